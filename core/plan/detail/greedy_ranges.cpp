#include "core/plan/detail/greedy_ranges.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

namespace neuroshard::plan::detail {
namespace {

constexpr int level_bisections = 20;

// Takes at most `speed` FLOP/s from the needs of the range, in FLOP/s of each unit: the largest needs per work first, at
// most `limit` tokens/s from each unit.
void serve_highest(const Chain& chain, UnitRange range, double speed, double limit,
                   std::vector<double>& need) {
  const auto above = [&](std::uint32_t unit, double level) {
    const double work = chain.work({unit, unit + 1});
    return std::clamp(need[unit] - level * work, 0.0, limit * work);
  };
  // The level, in tokens/s, down to which the needs are served.
  double low = 0, high = 0, all = 0;
  for (std::uint32_t unit = range.first; unit < range.end; ++unit) {
    high = std::max(high, need[unit] / chain.work({unit, unit + 1}));
    all += above(unit, 0);
  }
  if (all <= speed) high = 0;
  for (int i = 0; i < level_bisections && high > 0; ++i) {
    const double middle = (low + high) / 2;
    double sum = 0;
    for (std::uint32_t unit = range.first; unit < range.end; ++unit) sum += above(unit, middle);
    (sum <= speed ? high : low) = middle;
  }
  for (std::uint32_t unit = range.first; unit < range.end; ++unit) need[unit] -= above(unit, high);
}

// Peers take windows in descending order of speed.
class Greedy {
 public:
  explicit Greedy(const Problem& problem) : problem_(problem), chain_(problem.chain), order_(problem.count) {
    std::iota(order_.begin(), order_.end(), 0u);
    std::vector<double> supply(problem.count, 0);
    for (std::uint32_t peer = 0; peer < problem.count; ++peer) {
      const auto [entry, is_new] = windows_.try_emplace(problem.memory[peer]);
      std::vector<UnitRange>& windows = entry->second;
      for (std::uint32_t first = 0; is_new && first < chain_.size(); ++first) {
        const UnitRange range = problem.longest_from(peer, first);
        if (!range.empty()) windows.push_back(range);
        if (range.end == chain_.size()) break;
      }
      for (const UnitRange window : windows)
        supply[peer] =
            std::max(supply[peer], std::min(problem.speed[peer], limit(peer, window) * chain_.work(window)));
    }
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return supply[a] > supply[b]; });
  }

  // Gives every peer without a range one. need: work that no holder serves, FLOP/s of each unit. A peer that serves less
  // than the part `slow` of its window at the rate goes where owners are missing.
  void place(RangeState& state, std::vector<double> need, double rate, double slow) {
    need_ = std::move(need);
    for (const std::uint32_t peer : order_) {
      const std::vector<UnitRange>& windows = windows_[problem_.memory[peer]];
      if (windows.empty() || !state.range(peer).empty()) continue;
      const UnitRange best = choose(state, windows, peer, rate * slow);
      state.set(peer, best);
      serve_highest(chain_, best, problem_.speed[peer], limit(peer, best), need_);
    }
  }

  RangeState run(double rate, double slow) {
    std::vector<double> need;
    for (std::uint32_t unit = 0; unit < chain_.size(); ++unit)
      need.push_back(rate * chain_.work({unit, unit + 1}));
    RangeState state(problem_);
    place(state, std::move(need), rate, slow);
    return state;
  }

 private:
  // Tokens/s that the peer's line carries through the whole window.
  double limit(std::uint32_t peer, UnitRange window) const {
    const std::uint32_t crossings = chain_.crossings(window);
    if (crossings == 0) return std::numeric_limits<double>::infinity();
    return problem_.line[peer] / (crossings * chain_.boundary_bytes());
  }

  UnitRange choose(const RangeState& state, const std::vector<UnitRange>& windows, std::uint32_t peer,
                   double slow_rate) {
    const double speed = problem_.speed[peer];
    missing_.assign(1, 0);
    const std::uint32_t below_floor = 1 + chain_.size() * (problem_.replicas - problem_.floor);
    for (std::uint32_t unit = 0; unit < chain_.size(); ++unit) {
      const std::uint32_t owners = state.owners(unit);
      missing_.push_back(missing_.back() +
                         (owners < problem_.floor ? below_floor : problem_.thinness(owners)));
    }
    UnitRange best;
    double most = -1;
    std::uint32_t most_missing = 0;
    for (const UnitRange window : windows) {
      double sum = 0;
      for (std::uint32_t unit = window.first; unit < window.end; ++unit)
        sum += std::min(need_[unit], limit(peer, window) * chain_.work({unit, unit + 1}));
      const std::uint32_t missing =
          speed < slow_rate * chain_.work(window) ? missing_[window.end] - missing_[window.first] : 0;
      const bool better = missing != most_missing ? missing > most_missing : sum > most * (1 + 1e-9);
      if (!better && !best.empty()) continue;
      best = window;
      most = sum;
      most_missing = missing;
    }
    return best;
  }

  const Problem& problem_;
  const Chain& chain_;
  std::vector<std::uint32_t> order_;
  std::map<std::uint64_t, std::vector<UnitRange>> windows_;  // longest ranges, by memory
  std::vector<double> need_;                                 // FLOP/s of each unit
  std::vector<std::uint32_t> missing_;
};

}  // namespace

RangeState greedy_ranges(const Problem& problem, double bound) {
  Greedy greedy(problem);
  RangeState best = greedy.run(bound, 0);
  Score score = best.score();
  for (double part = 1; part > 0.6 && (score.missing > 0 || score.value() < part * bound); part -= 0.02) {
    for (const double slow : {0.05, 0.2, 0.5}) {
      RangeState state = greedy.run(part * bound, slow);
      if (state.missing() > score.missing) continue;
      const Score other = state.score();
      if (!other.better_than(score)) continue;
      score = other;
      best = std::move(state);
    }
  }
  return best;
}

RangeState with_newcomers(const Problem& problem, const std::vector<UnitRange>& held, double rate) {
  RangeState state(problem, held);
  Scheduler scheduler(problem.chain);
  scheduler.shortfall(state.holders(), rate);
  Greedy(problem).place(state, scheduler.unmet(), rate, 1);
  return state;
}

}  // namespace neuroshard::plan::detail
