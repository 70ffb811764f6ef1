// The data of a chart: series of buckets (first step, width, least, most, mean), and their reduction to the
// pixels there are.
#pragma once

#include <QString>
#include <cstddef>
#include <optional>
#include <vector>

#include "core/node/queries.h"

namespace neuroshard::ui {

struct PlotPoint {
  double x = 0;  // middle of the bucket
  double least = 0, most = 0, mean = 0;
  double count = 1;  // values in it
};

struct PlotSeries {
  QString name;                   // of the legend, in the user's language
  std::vector<PlotPoint> points;  // ascending by x
  int colour = 0;                 // of Theme::series
  bool band = false;              // shade from least to most
  bool smoothed = false;          // draw an exponential mean over it, and the raw line pale
  bool markers = false;           // a dot for each point: for series of few points
};

struct PlotRange {
  double from = 0, to = 1;
  double length() const { return to - from; }
  bool operator==(const PlotRange&) const = default;
};

PlotPoint to_point(const node::SeriesBucket& bucket);
std::vector<PlotPoint> to_points(const node::Series& series);

// The points within the range and one neighbour at each side, merged so that at most `columns` pixels' worth
// are left: at most 2 × columns points. Least and most survive exactly; the mean is weighted by the counts.
std::vector<PlotPoint> decimate(const std::vector<PlotPoint>& points, PlotRange range, int columns);

// Exponential mean over about `span` steps of x: y_i = y_{i-1} + (1 - e^(-Δx/span)) (mean_i - y_{i-1}).
std::vector<double> smooth(const std::vector<PlotPoint>& points, double span);

// Index of the point whose x is nearest; nothing for an empty series.
std::optional<std::size_t> nearest(const std::vector<PlotPoint>& points, double x);

}  // namespace neuroshard::ui
