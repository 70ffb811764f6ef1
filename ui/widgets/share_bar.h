// Parts of a whole as one stacked bar (QtCharts) over a legend of names, values and shares.
#pragma once

#include "ui/widgets/share_legend.h"

class QBarSet;
class QChartView;
class QHorizontalPercentBarSeries;

namespace neuroshard::ui {

class ShareBar final : public QWidget {
  Q_OBJECT
 public:
  ShareBar(const Theme& theme, const QString& accessible_name, QWidget* parent = nullptr);
  void set_parts(std::vector<SharePart> parts);  // changes values in place while their number stays
  const std::vector<SharePart>& parts() const { return parts_; }

 private:
  void paint_in_theme();

  const Theme& theme_;
  QChartView* view_;
  QHorizontalPercentBarSeries* series_;
  ShareLegend* legend_;
  std::vector<QBarSet*> sets_;  // the series'
  std::vector<SharePart> parts_;
};

}  // namespace neuroshard::ui
