#include "ui/widgets/plot_axes.h"

#include <QDateTime>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace neuroshard::ui {
namespace {

constexpr double margin = 0.06;  // of the height, above and below the data

double safe_log(double value) {
  return value > 0 ? std::log10(value) : -400;
}

// The largest base^n that is not above the value, n whole.
double power_below(double value, double base) {
  return std::pow(base, std::floor(std::log(value) / std::log(base) + 1e-12));
}

// The least round step that is not below `raw`.
double round_step(double raw, PlotUnit unit) {
  static constexpr std::array<double, 4> plain = {1, 2, 5, 10};
  static constexpr std::array<double, 10> bytes = {1, 2, 5, 10, 20, 50, 100, 256, 512, 1024};
  static constexpr double minute = 60, hour = 3600, day = 86400;
  static constexpr std::array<double, 19> time = {
      1,          2,          5,           10,          15,          30,   minute,
      2 * minute, 5 * minute, 10 * minute, 15 * minute, 30 * minute, hour, 2 * hour,
      3 * hour,   6 * hour,   12 * hour,   day,         7 * day};
  const auto first_not_below = [raw](const auto& steps, double scale) {
    const auto at =
        std::find_if(steps.begin(), steps.end(), [&](double step) { return step * scale >= raw; });
    return scale * (at == steps.end() ? steps.back() : *at);
  };
  switch (unit) {
    case PlotUnit::Plain: break;
    case PlotUnit::Bytes: return first_not_below(bytes, power_below(std::max(raw, 1.0), 1024));
    case PlotUnit::Time: return raw > time.back() ? std::ceil(raw / day) * day : first_not_below(time, 1);
  }
  return first_not_below(plain, power_below(raw, 10));
}

double local_offset(double seconds) {
  return QDateTime::fromSecsSinceEpoch(static_cast<qint64>(seconds)).offsetFromUtc();
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

std::vector<double> linear_ticks(PlotRange range, int count, PlotUnit unit) {
  std::vector<double> ticks;
  if (!(range.length() > 0) || count < 1 || !std::isfinite(range.length())) return ticks;
  const double step = round_step(range.length() / count, unit);
  const double shift = unit == PlotUnit::Time ? local_offset(range.from) : 0;
  const double first = std::ceil((range.from + shift) / step - 1e-9);
  for (double n = first; n * step - shift <= range.to + step * 1e-9; ++n) {
    ticks.push_back(n == 0 && shift == 0 ? 0.0 : n * step - shift);
    if (ticks.size() > 100) break;
  }
  return ticks;
}

std::vector<double> log_ticks(PlotRange range, int count, PlotUnit unit) {
  if (!(range.from > 0) || !(range.to > range.from)) return {};
  const double decades = std::log10(range.to / range.from);
  if (decades < 1) return linear_ticks(range, count, unit);
  std::vector<double> ticks;
  const bool fine = decades * 3 <= count * 1.5;
  const int every = std::max(1, static_cast<int>(std::ceil(decades / count)));
  // 1 … 999 B and then anew for each unit: three decades to a unit of bytes.
  const auto decade = [unit](int exponent) {
    if (unit != PlotUnit::Bytes || exponent < 0) return std::pow(10.0, exponent);
    return std::pow(1024.0, exponent / 3) * std::pow(10.0, exponent % 3);
  };
  const int low = static_cast<int>(std::floor(std::log10(range.from))) - 1;
  const int high = static_cast<int>(std::ceil(std::log10(range.to)));
  for (int exponent = low; exponent <= high; ++exponent) {
    if (exponent % every != 0) continue;
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor != 1.0 && !fine) continue;
      const double value = factor * decade(exponent);
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
  // The axis of values that are never negative does not go below zero.
  return {low >= 0 && low - room < 0 ? 0 : low - room, high + room};
}

}  // namespace neuroshard::ui
