// Parts of a whole as a ring (QtCharts) beside a legend of names, values and shares. Changes values in place.
#pragma once

#include "ui/widgets/share_legend.h"

class QBoxLayout;
class QChartView;
class QPieSeries;

namespace neuroshard::ui {

class Donut final : public QWidget {
  Q_OBJECT
 public:
  Donut(const Theme& theme, const QString& accessible_name, QWidget* parent = nullptr);
  void set_parts(std::vector<SharePart> parts);
  const std::vector<SharePart>& parts() const { return parts_; }
  QSize minimumSizeHint() const override;

 protected:
  void resizeEvent(QResizeEvent* event) override;  // narrow: the legend goes below

 private:
  bool fits_beside(int width) const;
  void paint_in_theme();

  const Theme& theme_;
  QChartView* view_;
  QPieSeries* ring_;
  ShareLegend* legend_;
  QBoxLayout* layout_;
  std::vector<SharePart> parts_;
};

}  // namespace neuroshard::ui
