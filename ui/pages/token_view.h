// A text as the model reads it: its tokens side by side in alternating colours, each with its id below.
#pragma once

#include <QWidget>
#include <vector>

#include "core/node/queries.h"

namespace neuroshard::ui {

class Theme;

// Threads: ui. As high as its tokens need at the width that it has.
class TokenView final : public QWidget {
  Q_OBJECT
 public:
  explicit TokenView(const Theme& theme, QWidget* parent = nullptr);

  void set_tokens(const std::vector<node::TokenPiece>& tokens);
  int count() const { return static_cast<int>(chips_.size()); }
  QString ids() const;  // "12 345 7", for copying

  bool hasHeightForWidth() const override { return true; }
  int heightForWidth(int width) const override;
  QSize sizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  struct Chip {
    QString text, id;
    int width = 0;
    bool ends_line = false;  // a line break in the text: what follows starts on a new line
  };
  void measure();
  // Calls place(chip, x, y) for each and returns the height.
  template <class Place>
  int lay_out(int width, Place place) const;
  QFont id_font() const;

  const Theme& theme_;
  std::vector<Chip> chips_;
  std::vector<std::uint32_t> ids_;
};

}  // namespace neuroshard::ui
