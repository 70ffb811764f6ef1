#include "ui/widgets/plot_axes.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace neuroshard::ui {
namespace {

constexpr double margin = 0.06;  // of the height, above and below the data

double safe_log(double value) {
  return value > 0 ? std::log10(value) : -400;
}

}  // namespace

double PlotAxes::to_pixel_x(double value) const {
  return area.left() + (value - x.from) / x.length() * area.width();
}

double PlotAxes::to_pixel_y(double value) const {
  double share = 0;
  if (log_y) {
    const double low = safe_log(y.from), high = safe_log(y.to);
    share = (safe_log(value) - low) / (high - low);
  } else {
    share = (value - y.from) / y.length();
  }
  // Far outside would overflow the painter's coordinates.
  return area.bottom() - std::clamp(share, -1e4, 1e4) * area.height();
}

double PlotAxes::to_value_x(double pixel) const {
  return x.from + (pixel - area.left()) / area.width() * x.length();
}

std::vector<double> linear_ticks(PlotRange range, int count) {
  std::vector<double> ticks;
  if (!(range.length() > 0) || count < 1 || !std::isfinite(range.length())) return ticks;
  const double raw = range.length() / count;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  double step = power;
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    step = factor * power;
    if (step >= raw) break;
  }
  const double first = std::ceil(range.from / step - 1e-9);
  for (double n = first; n * step <= range.to + step * 1e-9; ++n) {
    ticks.push_back(n == 0 ? 0.0 : n * step);
    if (ticks.size() > 100) break;
  }
  return ticks;
}

std::vector<double> log_ticks(PlotRange range, int count) {
  if (!(range.from > 0) || !(range.to > range.from)) return {};
  const double decades = std::log10(range.to / range.from);
  if (decades < 1) return linear_ticks(range, count);
  std::vector<double> ticks;
  const bool fine = decades * 3 <= count * 1.5;
  const int every = std::max(1, static_cast<int>(std::ceil(decades / count)));
  const int low = static_cast<int>(std::floor(std::log10(range.from)));
  const int high = static_cast<int>(std::ceil(std::log10(range.to)));
  for (int exponent = low; exponent <= high; ++exponent) {
    if (exponent % every != 0) continue;
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor != 1.0 && !fine) continue;
      const double value = factor * std::pow(10.0, exponent);
      if (value >= range.from && value <= range.to) ticks.push_back(value);
    }
  }
  return ticks;
}

PlotRange fitting_range(const std::vector<const std::vector<PlotPoint>*>& series, PlotRange x, bool log_y) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const auto* points : series) {
    for (const PlotPoint& point : *points) {
      if (point.x < x.from || point.x > x.to) continue;
      for (const double value : {point.least, point.most}) {
        if (!std::isfinite(value) || (log_y && value <= 0)) continue;
        low = std::min(low, value);
        high = std::max(high, value);
      }
    }
  }
  if (!(low <= high)) return {log_y ? 0.1 : 0.0, 1.0};
  if (log_y) {
    const double room = std::max(std::log10(high / low), 0.05) * margin;
    return {low * std::pow(10, -room - (low == high ? 0.1 : 0)),
            high * std::pow(10, room + (low == high ? 0.1 : 0))};
  }
  double room = (high - low) * margin;
  if (room == 0) room = high == 0 ? 0.5 : std::abs(high) * 0.1;
  // What is never negative is not drawn with an axis below zero.
  return {low >= 0 && low - room < 0 ? 0 : low - room, high + room};
}

}  // namespace neuroshard::ui
