// From values to pixels and back, and where an axis has its marks. Linear or logarithmic (base 10).
#pragma once

#include <QRectF>
#include <vector>

#include "ui/widgets/plot_series.h"

namespace neuroshard::ui {

struct PlotAxes {
  QRectF area;  // in pixels
  PlotRange x, y;
  bool log_y = false;

  double to_pixel_x(double value) const;
  double to_pixel_y(double value) const;  // on a log axis values <= 0 lie below the area
  double to_value_x(double pixel) const;
};

// The unit of an axis: it decides which numbers are round.
enum class PlotUnit {
  Plain,  // 1, 2, 5 × 10^n
  Bytes,  // 1, 2, 5, 10 … 100, 256, 512 × 1024^n: "20 KiB", not "19.5 KiB"
  Time,   // seconds since the epoch; whole seconds, minutes, hours and days of the local time
};

// About `count` round numbers within the range.
std::vector<double> linear_ticks(PlotRange range, int count, PlotUnit unit = PlotUnit::Plain);
// Powers of ten (bytes: 1, 10, 100 × 1024^n), with 2 and 5 between them while there is room; linear ticks
// when the range is within a decade.
std::vector<double> log_ticks(PlotRange range, int count, PlotUnit unit = PlotUnit::Plain);
// The least and the most of the points, with a margin; a single value gets room above and below. On a log
// axis only positive values count. Nothing to show: 0 … 1.
PlotRange fitting_range(const std::vector<const std::vector<PlotPoint>*>& series, PlotRange x, bool log_y);

}  // namespace neuroshard::ui
