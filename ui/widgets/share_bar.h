// Parts of a whole as one stacked bar with a legend of names, shares and values.
#pragma once

#include <QString>
#include <QWidget>
#include <vector>

namespace neuroshard::ui {

class Theme;

struct SharePart {
  QString name;
  double value = 0;  // not negative
  QString text;      // the value for people
  bool operator==(const SharePart&) const = default;
};

class ShareBar final : public QWidget {
  Q_OBJECT
 public:
  ShareBar(const Theme& theme, const QString& accessible_name, QWidget* parent = nullptr);
  void set_parts(std::vector<SharePart> parts);
  const std::vector<SharePart>& parts() const { return parts_; }
  QRectF part_rect(std::size_t part) const;  // of the bar
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  double sum() const;

  const Theme& theme_;
  std::vector<SharePart> parts_;
};

}  // namespace neuroshard::ui
