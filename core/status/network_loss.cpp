#include "core/status/network_loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/status/median.h"

namespace neuroshard::status {
namespace {

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

std::optional<NetworkLoss> network_loss(const std::vector<ReportedLoss>& reports) {
  std::vector<ReportedLoss> newest_first = reports;
  std::sort(newest_first.begin(), newest_first.end(),
            [](const ReportedLoss& a, const ReportedLoss& b) { return a.round > b.round; });
  double whole = 0;
  for (const ReportedLoss& one : newest_first) whole += one.weight;
  const auto is_enough = [whole](double weight) {
    return 2 * weight >= whole * (1 - weight_tolerance) &&
           weight > least_weight_that_counts * (1 + weight_tolerance);
  };
  std::vector<Weighted> counted;
  double reached = 0;
  std::uint64_t round = 0;
  for (const ReportedLoss& one : newest_first) {
    if (one.round != round && is_enough(reached)) break;
    round = one.round;
    reached += one.weight;
    counted.push_back({one.loss, one.weight});
  }
  const auto median = lower_median(std::move(counted));
  if (!median) return std::nullopt;
  return NetworkLoss{round, *median};
}

std::optional<double> OwnLoss::at(std::uint64_t round, std::uint64_t steps, std::optional<double> loss) {
  if (steps_ != steps) {
    steps_ = steps;
    round_ = round;
  }
  return round <= round_ + 1 ? loss : std::nullopt;
}

std::string_view to_string(Trend trend) {
  switch (trend) {
    case Trend::InsufficientData: return "insufficient data";
    case Trend::Improving: return "improving";
    case Trend::Stable: return "stable";
    case Trend::Degrading: return "degrading";
  }
  return "unknown";
}

void LossHistory::add(const NetworkLoss& now) {
  if (!points_.empty() && now.round < points_.back().round) return;
  if (!points_.empty() && now.round == points_.back().round) {
    points_.pop_back();
    if (count_ <= compared_points) first_.pop_back();
    --count_;
  } else if (!points_.empty()) {
    least_before_ = std::min(least_before_.value_or(points_.back().loss), points_.back().loss);
  }
  const double before = points_.empty() ? now.loss : points_.back().mean;
  points_.push_back({now.round, now.loss, before + smoothing * (now.loss - before)});
  if (points_.size() > most_points) points_.pop_front();
  if (first_.size() < compared_points) first_.push_back(now.loss);
  ++count_;
}

std::optional<double> LossHistory::least() const {
  if (points_.empty()) return std::nullopt;
  return std::min(least_before_.value_or(points_.back().loss), points_.back().loss);
}

Trend LossHistory::trend() const {
  if (count_ < least_points) return Trend::InsufficientData;
  const std::size_t used = std::min(points_.size(), trend_points);
  const std::size_t half = used / 2;
  std::vector<double> earlier, later;
  for (std::size_t i = points_.size() - used; i < points_.size(); ++i)
    (i < points_.size() - half ? earlier : later).push_back(points_[i].mean);
  const double from = mean(earlier), to = mean(later);
  if (from <= 0) return Trend::Stable;
  const double change = (to - from) / from;
  return change < -trend_change ? Trend::Improving : change > trend_change ? Trend::Degrading : Trend::Stable;
}

LossHistory::Verdict LossHistory::verdict() const {
  if (count_ < least_points) {
    return {false, fmt::format("not known before {} rounds have been seen; {} have", least_points, count_)};
  }
  std::vector<double> last;
  for (std::size_t i = points_.size() - compared_points; i < points_.size(); ++i)
    last.push_back(points_[i].loss);
  const double from = mean(first_), to = mean(last);
  const bool verified = to < verified_below * from;
  const double percent = from > 0 ? 100 * (from - to) / from : 0;
  return {verified,
          fmt::format("the network loss went from {:.4f} to {:.4f} ({:+.1f} %; means of three rounds) in the "
                      "{} rounds that this node has seen; a fall by 10 % counts as shown",
                      from, to, -percent, count_)};
}

}  // namespace neuroshard::status
