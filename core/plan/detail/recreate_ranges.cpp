#include "core/plan/detail/recreate_ranges.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "core/base/rng.h"
#include "core/plan/detail/filling.h"

namespace neuroshard::plan::detail {
namespace {

constexpr double aim_gain = 1.01;     // of the unit that is served least
constexpr double least_aim = 1e-3;    // of the bound
constexpr double reached = 1 - 1e-4;  // of the bound: nothing is left to find
constexpr double clearly_more = 1 + 1e-6;
// A change may raise the cost by this part of the cost of lacking the gain everywhere, and by less and less.
constexpr double accepted = 0.01;
constexpr std::uint32_t most_draws = 60;
constexpr int settling_rounds = 4;
constexpr std::uint32_t least_ruined = 2, most_ruined = 5;
constexpr std::uint32_t drawn_peers = 4;
constexpr std::uint32_t refill_period = 64, refilled = 8;
// Units that windows are filled over: about a third of a second.
constexpr std::uint64_t most_filled = 6'000'000;

void fastest_first(const Problem& problem, std::vector<std::uint32_t>& peers) {
  std::stable_sort(peers.begin(), peers.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return problem.speed[a] > problem.speed[b]; });
}

class Recreate {
 public:
  Recreate(const Problem& problem, double bound, std::uint64_t seed)
      : problem_(problem), bound_(bound), filling_(problem), rng_(seed) {
    for (std::uint32_t peer = 0; peer < problem.count; ++peer)
      if (!filling_.windows(peer).empty()) placed_.push_back(peer);
    fastest_first(problem, placed_);
    filling_.set_target(bound);
    for (const std::uint32_t peer : placed_) filling_.place(peer);
    best_ = filling_.ranges();
    best_missing_ = filling_.missing();
    best_served_ = filling_.least_served();
    aim();
  }

  // most: units that may be filled.
  RangeState run(std::uint64_t most) {
    for (std::uint32_t step = 1; !placed_.empty() && filling_.filled() < most && !finished(); ++step) {
      progress_ = static_cast<double>(filling_.filled()) / static_cast<double>(most);
      try_step();
      if (step % refill_period != 0) continue;
      for (std::uint32_t i = 0; i < refilled; ++i) filling_.refill(any_peer());
      cost_ = filling_.cost();
      record();
    }
    return {problem_, best_};
  }

 private:
  bool finished() const { return best_missing_ == 0 && best_served_ >= bound_ * reached; }
  std::uint32_t any_peer() { return placed_[rng_.below(placed_.size())]; }

  void aim() {
    filling_.set_target(std::max(best_served_ * aim_gain, bound_ * least_aim));
    for (const std::uint32_t peer : placed_) filling_.refill(peer);
    cost_ = filling_.cost();
  }

  void record() {
    const std::uint32_t missing = filling_.missing();
    const double served = filling_.least_served();
    if (missing > best_missing_ || (missing == best_missing_ && served <= best_served_ * clearly_more))
      return;
    best_missing_ = missing;
    best_served_ = served;
    best_ = filling_.ranges();
    aim();
  }

  // The unit that lacks most, with some chance for others.
  std::uint32_t needy_unit() {
    std::uint32_t found = 0;
    double most = -1;
    for (std::uint32_t unit = 0; unit < problem_.chain.size(); ++unit) {
      double lack = (filling_.target() - filling_.served(unit)) * (0.5 + rng_.uniform());
      if (filling_.lacks_owners(unit)) lack += filling_.target();
      if (lack <= most) continue;
      most = lack;
      found = unit;
    }
    return found;
  }

  std::uint32_t peer_that_fits(std::uint32_t unit) {
    std::uint32_t peer = any_peer();
    for (std::uint32_t i = 0; i < 5 * drawn_peers && !problem_.fits(peer, {unit, unit + 1}); ++i)
      peer = any_peer();
    return peer;
  }

  std::uint32_t idle_peer() {
    std::uint32_t best = any_peer();
    for (std::uint32_t i = 1; i < drawn_peers; ++i) {
      const std::uint32_t other = any_peer();
      if (filling_.idle(other) > filling_.idle(best)) best = other;
    }
    return best;
  }

  // The peer, and holders of one of its windows: the ends of the model are worth more than others, because fewer
  // boundaries are crossed there.
  void choose_neighbours(std::uint32_t peer, std::uint64_t number) {
    const std::vector<UnitRange>& windows = filling_.windows(peer);
    const std::uint64_t kind = rng_.below(3);
    const UnitRange window = kind == 0   ? windows.front()
                             : kind == 1 ? windows.back()
                                         : windows[rng_.below(windows.size())];
    chosen_.push_back(peer);
    for (std::uint32_t i = 0; i < most_draws && chosen_.size() < number; ++i) {
      const std::uint32_t other = any_peer();
      const UnitRange range = filling_.range(other);
      if (range.first < window.end && window.first < range.end) choose(other);
    }
  }

  void choose(std::uint32_t peer) {
    if (std::find(chosen_.begin(), chosen_.end(), peer) == chosen_.end()) chosen_.push_back(peer);
  }

  void choose() {
    chosen_.clear();
    const std::uint64_t number = least_ruined + rng_.below(most_ruined - least_ruined + 1);
    if (rng_.below(2) == 0) {
      choose_neighbours(idle_peer(), number);
      return;
    }
    chosen_.push_back(peer_that_fits(needy_unit()));
    for (std::uint64_t i = 1; i < number; ++i) choose(any_peer());
  }

  void try_step() {
    choose();
    before_.clear();
    for (const std::uint32_t peer : chosen_) {
      before_.push_back({peer, filling_.range(peer), filling_.rates(peer)});
      filling_.drop(peer);
    }
    if (rng_.below(2) == 0) {
      fastest_first(problem_, chosen_);
    }
    for (const std::uint32_t peer : chosen_) filling_.place(peer);
    for (const std::uint32_t peer : chosen_) filling_.refill(peer);
    const double cost = filling_.cost();
    const double lack = (aim_gain - 1) * filling_.target();
    if (cost <=
        cost_ + accepted * (1 - progress_) * problem_.chain.work(problem_.chain.whole()) * lack * lack) {
      cost_ = cost;
      record();
      return;
    }
    for (const std::uint32_t peer : chosen_) filling_.drop(peer);
    for (Before& before : before_) filling_.restore(before.peer, before.range, std::move(before.rates));
  }

  struct Before {
    std::uint32_t peer = 0;
    UnitRange range;
    std::vector<double> rates;
  };

  const Problem& problem_;
  double bound_;
  Filling filling_;
  Rng rng_;
  std::vector<std::uint32_t> placed_;  // peers that fit a unit, by descending speed
  std::vector<std::uint32_t> chosen_;
  std::vector<Before> before_;
  std::vector<UnitRange> best_;
  std::uint32_t best_missing_ = 0;
  double best_served_ = 0, cost_ = 0;
  double progress_ = 0;  // part of the work that is done
};

}  // namespace

RangeState place_ranges(const Problem& problem, double bound) {
  std::vector<std::uint32_t> order(problem.count);
  std::iota(order.begin(), order.end(), 0u);
  fastest_first(problem, order);
  RangeState best(problem);
  Score score{std::numeric_limits<std::uint32_t>::max(), 0};
  for (double part = 1; part > 0.6; part -= 0.02) {
    Filling filling(problem);
    filling.set_target(part * bound);
    for (const std::uint32_t peer : order)
      if (!filling.windows(peer).empty()) filling.place(peer);
    RangeState state(problem, filling.ranges());
    const Score other = state.score();
    if (!other.better_than(score)) continue;
    score = other;
    best = std::move(state);
  }
  return best;
}

RangeState recreate_ranges(const Problem& problem, double bound, double effort, std::uint64_t seed) {
  return Recreate(problem, bound, seed)
      .run(static_cast<std::uint64_t>(effort * static_cast<double>(most_filled)));
}

RangeState with_newcomers(const Problem& problem, const std::vector<UnitRange>& held, double rate) {
  Filling filling(problem);
  filling.set_target(rate);
  std::vector<std::uint32_t> newcomers;
  for (std::uint32_t peer = 0; peer < problem.count; ++peer) {
    if (held[peer].empty()) {
      if (!filling.windows(peer).empty()) newcomers.push_back(peer);
    } else {
      filling.restore(peer, held[peer], {});
    }
  }
  for (int round = 0; round < settling_rounds; ++round)
    for (std::uint32_t peer = 0; peer < problem.count; ++peer) filling.refill(peer);
  fastest_first(problem, newcomers);
  for (const std::uint32_t peer : newcomers) filling.place(peer);
  return {problem, filling.ranges()};
}

}  // namespace neuroshard::plan::detail
