#include "core/plan/holder_speeds.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "core/base/check.h"
#include "core/plan/chain.h"

namespace neuroshard::plan {
namespace {

constexpr double alike = 2;  // so many times as fast, at most

std::uint32_t lower_median(std::vector<std::uint32_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::vector<double> counted_speeds(const std::vector<SaidSpeed>& said) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> by_wallet;
  for (const SaidSpeed& one : said)
    if (one.speed != 0) by_wallet[one.wallet].push_back(one.speed);
  if (by_wallet.empty()) return std::vector<double>(said.size(), 1.0);
  std::vector<std::uint32_t> of_wallets;
  for (auto& [wallet, speeds] : by_wallet) of_wallets.push_back(lower_median(std::move(speeds)));
  const double median = lower_median(std::move(of_wallets));
  std::vector<double> counted;
  for (const SaidSpeed& one : said)
    counted.push_back(one.speed == 0 ? median : std::min<double>(one.speed, most_over_median * median));
  return counted;
}

double range_work(const compute::ModelShape& shape, const compute::StageRange& range) {
  double work = range.embed ? embedding_work(shape) : 0;
  work += layer_work(shape) * range.layer_count;
  return range.head ? work + head_work(shape) : work;
}

SpeedLine::SpeedLine(std::vector<double> speeds, std::uint64_t turn)
    : speeds_(std::move(speeds)),
      order_(speeds_.size()),
      together_(std::accumulate(speeds_.begin(), speeds_.end(), 0.0)) {
  NS_CHECK(!speeds_.empty());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::stable_sort(order_.begin(), order_.end(),
                   [this](std::size_t a, std::size_t b) { return speeds_[a] > speeds_[b]; });
  for (auto first = order_.begin(); first != order_.end();) {
    const auto slower = [this, fastest = speeds_[*first]](std::size_t holder) {
      return fastest > alike * speeds_[holder];
    };
    const auto end = std::find_if(first, order_.end(), slower);
    std::rotate(first, first + static_cast<std::ptrdiff_t>(turn % static_cast<std::uint64_t>(end - first)),
                end);
    first = end;
  }
}

double SpeedLine::middle(std::size_t holder) const {
  double before = 0;
  for (const std::size_t other : order_) {
    if (other == holder) break;
    before += speeds_[other];
  }
  return (before + speeds_[holder] / 2) / together_;
}

// Rounding may leave a rest beyond the last one.
std::size_t SpeedLine::at(double place) const {
  double left = place * together_;
  for (const std::size_t holder : order_) {
    if (left < speeds_[holder]) return holder;
    left -= speeds_[holder];
  }
  return order_.back();
}

}  // namespace neuroshard::plan
