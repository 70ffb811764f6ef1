#include "ui/widgets/plot_series.h"

#include <algorithm>
#include <cmath>

namespace neuroshard::ui {
namespace {

// Weighted mean of two neighbours; their extremes.
void absorb(PlotPoint& into, const PlotPoint& next, double& weighted_x) {
  const double total = into.count + next.count;
  into.mean = (into.mean * into.count + next.mean * next.count) / total;
  weighted_x += next.x * next.count;
  into.least = std::min(into.least, next.least);
  into.most = std::max(into.most, next.most);
  into.count = total;
}

}  // namespace

PlotPoint to_point(const node::SeriesBucket& bucket) {
  PlotPoint point;
  point.x = static_cast<double>(bucket.first_step) + (static_cast<double>(bucket.width) - 1) / 2;
  point.least = bucket.least;
  point.most = bucket.most;
  point.mean = bucket.mean;
  point.count = static_cast<double>(std::max<std::uint64_t>(bucket.count, 1));
  return point;
}

std::vector<PlotPoint> to_points(const node::Series& series) {
  std::vector<PlotPoint> points;
  points.reserve(series.buckets.size());
  for (const node::SeriesBucket& bucket : series.buckets) points.push_back(to_point(bucket));
  return points;
}

std::vector<PlotPoint> decimate(const std::vector<PlotPoint>& points, PlotRange range, int columns) {
  if (points.empty() || columns < 1 || !(range.length() > 0)) return {};
  const auto before = [](const PlotPoint& point, double x) { return point.x < x; };
  auto first = std::lower_bound(points.begin(), points.end(), range.from, before);
  auto last = std::lower_bound(first, points.end(), std::nextafter(range.to, range.to + 1), before);
  if (first != points.begin()) --first;  // so that the line enters and leaves at the edges
  if (last != points.end()) ++last;
  const auto count = static_cast<std::size_t>(last - first);
  if (count <= 2 * static_cast<std::size_t>(columns)) return {first, last};
  std::vector<PlotPoint> result;
  result.reserve(static_cast<std::size_t>(columns) + 2);
  const double width = range.length() / columns;
  auto column_of = [&](const PlotPoint& point) { return std::floor((point.x - range.from) / width); };
  double column = 0, weighted_x = 0;
  for (auto at = first; at != last; ++at) {
    const double own = std::clamp(column_of(*at), -1.0, static_cast<double>(columns));
    if (result.empty() || own != column) {
      if (!result.empty()) result.back().x = weighted_x / result.back().count;
      result.push_back(*at);
      weighted_x = at->x * at->count;
      column = own;
    } else {
      absorb(result.back(), *at, weighted_x);
    }
  }
  result.back().x = weighted_x / result.back().count;
  return result;
}

std::vector<double> smooth(const std::vector<PlotPoint>& points, double span) {
  std::vector<double> result;
  result.reserve(points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i == 0) {
      result.push_back(points[i].mean);
      continue;
    }
    const double share = 1 - std::exp(-(points[i].x - points[i - 1].x) / std::max(span, 1e-9));
    result.push_back(result.back() + share * (points[i].mean - result.back()));
  }
  return result;
}

std::optional<std::size_t> nearest(const std::vector<PlotPoint>& points, double x) {
  if (points.empty()) return std::nullopt;
  const auto after = std::lower_bound(points.begin(), points.end(), x,
                                      [](const PlotPoint& point, double value) { return point.x < value; });
  if (after == points.begin()) return 0;
  const auto index = static_cast<std::size_t>(after - points.begin());
  if (after == points.end()) return points.size() - 1;
  return x - points[index - 1].x <= points[index].x - x ? index - 1 : index;
}

}  // namespace neuroshard::ui
