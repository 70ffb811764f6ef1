#include "core/plan/holder_speeds.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/check.h"
#include "core/plan/chain.h"

namespace neuroshard::plan {
namespace {

constexpr double alike = 2;  // so many times as fast, at most

}  // namespace

std::vector<double> counted_speeds(const std::vector<std::uint32_t>& said) {
  std::vector<std::uint32_t> known;
  std::copy_if(said.begin(), said.end(), std::back_inserter(known),
               [](std::uint32_t speed) { return speed != 0; });
  if (known.empty()) return std::vector<double>(said.size(), 1.0);
  const auto middle = known.begin() + static_cast<std::ptrdiff_t>((known.size() - 1) / 2);
  std::nth_element(known.begin(), middle, known.end());
  const double median = *middle;
  std::vector<double> counted;
  for (const std::uint32_t speed : said)
    counted.push_back(speed == 0 ? median : std::min<double>(speed, most_over_median * median));
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
