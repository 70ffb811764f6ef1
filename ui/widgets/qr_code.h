// A QR code (ISO/IEC 18004, drawn by libqrencode) of a text, such as an invitation. Black on white in every
// theme, because readers want it so; as large as whole pixels per module allow.
#pragma once

#include <QImage>
#include <QWidget>
#include <vector>

namespace neuroshard::ui {

class QrCode final : public QWidget {
  Q_OBJECT
 public:
  static constexpr int quiet = 4;           // modules around it (§5.3.8)
  static constexpr int most_bytes = 2'953;  // of the largest one, error correction level L

  explicit QrCode(QWidget* parent = nullptr);

  // False, and nothing is shown: empty, or longer than most_bytes.
  bool set_text(const QString& text);
  const QString& text() const { return text_; }
  int modules() const { return size_; }  // of one side, with the quiet zone; 0 = nothing to show
  // One pixel a module, black on white; null when there is nothing.
  QImage image() const;

  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;
  bool hasHeightForWidth() const override { return true; }
  int heightForWidth(int width) const override { return width; }

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  QString text_;
  QImage image_;
  int size_ = 0;
};

}  // namespace neuroshard::ui
