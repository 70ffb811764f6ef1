// The parts of a whole: colour, name, value for people, share.
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

double sum_of(const std::vector<SharePart>& parts);
QString describe(const std::vector<SharePart>& parts);  // for screen readers
QString csv_of(const std::vector<SharePart>& parts);    // name, value, share

// Lines for the parts, in the order and colours of the chart beside them.
class ShareLegend final : public QWidget {
  Q_OBJECT
 public:
  explicit ShareLegend(const Theme& theme, QWidget* parent = nullptr);
  void set_parts(std::vector<SharePart> parts);
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  const Theme& theme_;
  std::vector<SharePart> parts_;
};

}  // namespace neuroshard::ui
