#include "core/plan/detail/filling.h"

#include <cmath>
#include <limits>
#include <utility>

namespace neuroshard::plan::detail {
namespace {

constexpr int fill_bisections = 16;
constexpr double line_rounding = 1 + 1e-6;

}  // namespace

Filling::Filling(const Problem& problem)
    : problem_(problem),
      chain_(problem.chain),
      served_(chain_.size(), 0),
      owned_(std::size_t{chain_.size()} * problem.owners, 0),
      distinct_(chain_.size(), 0),
      ranges_(problem.count),
      rates_(problem.count),
      windows_of_(problem.count) {
  for (std::uint32_t peer = 0; peer < problem.count; ++peer) {
    const auto [entry, is_new] = windows_.try_emplace(problem.memory[peer]);
    if (is_new) entry->second = longest_windows(peer);
    windows_of_[peer] = &entry->second;
  }
}

std::uint32_t Filling::missing() const {
  std::uint32_t missing = 0;
  for (const std::uint32_t owners : distinct_) missing += problem_.missing(owners);
  return missing;
}

double Filling::idle(std::uint32_t peer) const {
  double used = 0;
  for (std::uint32_t unit = ranges_[peer].first; unit < ranges_[peer].end; ++unit)
    used += rates_[peer][unit - ranges_[peer].first] * work(unit);
  return problem_.speed[peer] - used;
}

double Filling::cost() const {
  double sum = 0;
  for (std::uint32_t unit = 0; unit < chain_.size(); ++unit) {
    const double lack = std::max(0.0, target_ - served_[unit]);
    sum += work(unit) * lack * lack + owner_weight() * misses(distinct_[unit]);
  }
  return sum;
}

void Filling::place(std::uint32_t peer) {
  double most = -std::numeric_limits<double>::infinity();
  UnitRange best;
  for (const UnitRange window : windows(peer)) {
    double gain = fill(peer, window);
    for (std::uint32_t unit = window.first; unit < window.end; ++unit) {
      if (owned(unit, peer) == 0)
        gain += owner_weight() * (misses(distinct_[unit]) - misses(distinct_[unit] + 1));
    }
    if (gain <= most) continue;
    most = gain;
    best = window;
  }
  restore(peer, best, {});
  refill(peer);
}

void Filling::drop(std::uint32_t peer) {
  count(peer, false);
  serve(peer, -1);
  ranges_[peer] = {};
  rates_[peer].clear();
}

void Filling::refill(std::uint32_t peer) {
  serve(peer, -1);
  fill(peer, ranges_[peer]);
  rates_[peer] = filling_;
  serve(peer, 1);
}

void Filling::restore(std::uint32_t peer, UnitRange range, std::vector<double> rates) {
  ranges_[peer] = range;
  rates_[peer] = std::move(rates);
  rates_[peer].resize(range.end - range.first, 0);
  count(peer, true);
  serve(peer, 1);
}

double Filling::misses(std::uint32_t owners) const {
  const double below = owners < problem_.floor ? problem_.floor - owners : 0;
  double thin = 0;
  for (std::uint32_t k = std::max(owners, problem_.floor); k < problem_.replicas; ++k)
    thin += problem_.thinness(k);
  return below + thin / chain_.size();
}

std::vector<UnitRange> Filling::longest_windows(std::uint32_t peer) const {
  std::vector<UnitRange> windows;
  for (std::uint32_t first = 0; first < chain_.size(); ++first) {
    const UnitRange range = problem_.longest_from(peer, first);
    if (range.empty() || (!windows.empty() && windows.back().end == range.end)) continue;
    windows.push_back(range);
  }
  return windows;
}

void Filling::count(std::uint32_t peer, bool add) {
  for (std::uint32_t unit = ranges_[peer].first; unit < ranges_[peer].end; ++unit) {
    std::uint32_t& number = owned(unit, peer);
    if (add && number++ == 0) ++distinct_[unit];
    if (!add && --number == 0) --distinct_[unit];
  }
}

void Filling::serve(std::uint32_t peer, double sign) {
  const UnitRange range = ranges_[peer];
  for (std::uint32_t unit = range.first; unit < range.end; ++unit)
    served_[unit] += sign * rates_[peer][unit - range.first];
}

// The lack down to which the peer serves the units of the window with its speed.
double Filling::level(std::uint32_t peer, UnitRange window, double most) const {
  const auto needed = [&](double level) {
    double sum = 0;
    for (std::uint32_t unit = window.first; unit < window.end; ++unit)
      sum += work(unit) * std::clamp(lack(unit) - level, 0.0, most);
    return sum;
  };
  if (needed(0) <= problem_.speed[peer]) return 0;
  double low = 0, high = 0;
  for (std::uint32_t unit = window.first; unit < window.end; ++unit) high = std::max(high, lack(unit));
  for (int i = 0; i < fill_bisections; ++i) {
    const double middle = (low + high) / 2;
    (needed(middle) <= problem_.speed[peer] ? high : low) = middle;
  }
  return high;
}

// Tokens/s that cross to other holders and back at the rates in filling_.
double Filling::crossing(UnitRange window) const {
  double sum = 0, before = window.first > 0 ? 0 : filling_.front();
  for (const double rate : filling_) {
    sum += std::abs(rate - before);
    before = rate;
  }
  return window.end < chain_.size() ? sum + before : sum;
}

// Rates of the peer in the window, in filling_: where most is lacking, or level where its line does not carry that. By
// how much they lower the cost.
double Filling::fill(std::uint32_t peer, UnitRange window) {
  filled_ += window.end - window.first;
  filling_.assign(window.end - window.first, 0);
  if (window.empty()) return 0;
  const std::uint32_t crossings = chain_.crossings(window);
  const double line = problem_.line[peer] / chain_.boundary_bytes();
  const double most = crossings == 0 ? target_ : std::min(target_, line / crossings);
  const double level = this->level(peer, window, most);
  for (std::uint32_t unit = window.first; unit < window.end; ++unit)
    filling_[unit - window.first] = std::clamp(lack(unit) - level, 0.0, most);
  if (crossing(window) > line * line_rounding)
    std::fill(filling_.begin(), filling_.end(), std::min(most, problem_.speed[peer] / chain_.work(window)));
  double gain = 0;
  for (std::uint32_t unit = window.first; unit < window.end; ++unit) {
    const double before = lack(unit), after = std::max(0.0, before - filling_[unit - window.first]);
    gain += work(unit) * (before * before - after * after);
  }
  return gain;
}

double Filling::least_served() const {
  return *std::min_element(served_.begin(), served_.end());
}

// One owner weighs as much as a unit that nobody serves.
double Filling::owner_weight() const {
  return chain_.work(chain_.whole()) / chain_.size() * target_ * target_;
}

}  // namespace neuroshard::plan::detail
