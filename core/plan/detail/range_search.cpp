#include "core/plan/detail/range_search.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "core/base/rng.h"

namespace neuroshard::plan::detail {
namespace {

constexpr std::uint32_t passes = 4;  // each from the best state so far, with another target
constexpr std::size_t most_repeated = 200;
constexpr std::uint32_t most_polished = 400;
constexpr std::uint64_t polish_passes = 60'000;  // over all holders
constexpr double polish_gain = 1.3;              // of the throughput, that one change is looked for
constexpr std::uint32_t short_chain = 12;
constexpr std::uint32_t most_peers_of_all = 14;
constexpr double most_plans = 20'000;  // that are all tried
constexpr int revert_rounds = 2;
constexpr std::uint32_t most_searched_ends = 200;
constexpr std::uint32_t most_steps = 120'000;  // of all rounds
// Steps times (peers + units): about half a second; in large networks half of it.
constexpr std::uint64_t most_work = 14'000'000;
// Passes over all holders in which one search checks plans, times (peers + units): about half a second. Most searches need a
// tenth of them; where few peers may move, steps are cheap, and these would take most of the time.
constexpr std::uint64_t most_checked = 8'000'000;
constexpr std::uint32_t large_network = 300;
// Targets, by the best throughput so far. Low ones refine, high ones leave states that no small step improves.
constexpr double target_gains[] = {1.015, 1.25, 1.015, 1.06};
constexpr double first_threshold = 0.001;  // of all work
constexpr std::uint32_t tournament = 4;
constexpr double next_try = 0.8;  // of the shortfall of the last one in vain

std::uint64_t budget(const Problem& problem, std::uint64_t most) {
  return problem.count > large_network ? most / 2 : most;
}

class RangeSearch {
 public:
  RangeSearch(const Problem& problem, const RangeState& start, double bound, const SearchLimits& limits,
              std::uint64_t seed)
      : problem_(problem),
        chain_(problem.chain),
        bound_(bound),
        limits_(limits),
        state_(start),
        best_(start),
        best_score_(start.score()),
        scheduler_(chain_),
        target_gain_(target_gains[(seed - 1) % std::size(target_gains)]),
        rng_(seed) {
    for (std::uint32_t peer = 0; peer < problem.count; ++peer) {
      if (limits.movable.empty() || limits.movable[peer] != 0) consider(peer);
    }
    add_fixed();
    fitting_.resize(chain_.size());
    for (const std::uint32_t peer : movable_) {
      for (std::uint32_t unit = 0; unit < chain_.size(); ++unit) {
        if (problem.fits(peer, {unit, unit + 1})) fitting_[unit].push_back(peer);
      }
    }
    for (std::uint32_t peer = 0; peer < problem.count && !limits.held.empty(); ++peer)
      moved_ += bytes_of(peer);
  }

  RangeState run(std::uint32_t steps) {
    if (movable_.empty()) return best_;
    raise_target();
    double value = this->value();
    for (std::uint32_t step = 0; step < steps && !finished(); ++step) {
      changed_.clear();
      propose();
      if (changed_.empty()) continue;
      const double next = this->value();
      const double threshold = first_threshold * (steps - step) / steps;
      if (next > value + threshold) {
        undo();
        continue;
      }
      value = next;
      if (record()) value = this->value();
    }
    return best_;
  }

  bool finished() const {
    if (checked_ > budget(problem_, most_checked)) return true;
    const double enough = limits_.enough > 0 ? limits_.enough : bound_ * (1 - 1e-4);
    return best_score_.missing == 0 && best_score_.value() >= enough;
  }
  std::uint64_t step_work() const { return guide_.size() + chain_.size(); }
  const Score& score() const { return best_score_; }

 private:
  // In a large network, a peer that fits only an end of the chain stays where the start put it.
  void consider(std::uint32_t peer) {
    const bool inner = problem_.fits(peer, {chain_.size() / 2, chain_.size() / 2 + 1});
    if (problem_.count > most_searched_ends && !inner) return;
    movable_.push_back(peer);
  }

  // The guide has one holder per peer that may move, and one for all others of the same range.
  void add_fixed() {
    guide_of_.assign(problem_.count, problem_.count);
    for (const std::uint32_t peer : movable_) {
      guide_of_[peer] = static_cast<std::uint32_t>(guide_.size());
      guide_.push_back(state_.holders()[peer]);
    }
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> fixed;
    for (std::uint32_t peer = 0; peer < problem_.count; ++peer) {
      Holder holder = state_.holders()[peer];
      if (guide_of_[peer] != problem_.count || holder.range.empty()) continue;
      const double crossed = chain_.crossings(holder.range) * chain_.boundary_bytes();
      if (crossed > 0)
        holder.speed = std::min(holder.speed, holder.line / crossed * chain_.work(holder.range));
      const auto [entry, is_new] = fixed.try_emplace({holder.range.first, holder.range.end}, guide_.size());
      if (is_new) {
        guide_.push_back(holder);
      } else {
        guide_[entry->second].speed += holder.speed;
        guide_[entry->second].line += holder.line;
      }
    }
  }

  void set(std::uint32_t peer, UnitRange range) {
    const bool counts = !limits_.held.empty();
    if (counts) moved_ -= bytes_of(peer);
    state_.set(peer, range);
    guide_[guide_of_[peer]].range = range;
    if (counts) moved_ += bytes_of(peer);
  }

  double idle(std::uint32_t peer) const { return scheduler_.idle()[guide_of_[peer]]; }

  void raise_target() {
    target_ = std::max(std::min(best_score_.throughput * target_gain_, bound_), bound_ * 1e-3);
  }

  // Less is better.
  double value() {
    shortfall_ = scheduler_.shortfall(guide_, target_);
    double value = shortfall_ + state_.missing() + state_.thin();
    if (!limits_.held.empty())
      value += limits_.bytes_weight * static_cast<double>(moved_) /
               static_cast<double>(chain_.transfer(chain_.whole()));
    return value;
  }

  // Keeps the state if it is the best one so far. Whether the target changed.
  bool record() {
    if (state_.missing() > best_score_.missing) return false;
    Score score{state_.missing(), 0, state_.thin()};
    const double needed = best_score_.value() * (1 + score.thin);
    const bool covers_more = score.missing < best_score_.missing;
    const bool hopeless = shortfall_ > 0 && shortfall_ > std::min(1 - needed / target_, hopeless_);
    if (!covers_more && hopeless) return false;  // too little at a lower rate, too
    const std::uint64_t passes = scheduler_.passes();
    if (covers_more) {
      score = state_.score(scheduler_);
    } else if (shortfall_ == 0 && scheduler_.serves(state_.holders(), target_)) {
      score.throughput = scheduler_.largest_rate(state_.holders(), target_, std::min(bound_, target_ * 1.1));
    } else if (needed < target_ && scheduler_.serves(state_.holders(), needed)) {
      score.throughput = scheduler_.largest_rate(state_.holders(), needed, target_);
    }
    checked_ += (scheduler_.passes() - passes) * (problem_.count + chain_.size());
    if (!score.better_than(best_score_)) {
      if (shortfall_ > 0) hopeless_ = shortfall_ * next_try;
      return false;
    }
    best_score_ = score;
    best_ = state_;
    hopeless_ = 1;
    raise_target();
    return true;
  }

  std::uint64_t bytes_of(std::uint32_t peer) const {
    const UnitRange held = limits_.held[peer];
    return held.empty() ? 0 : fetched_bytes(chain_, held, state_.range(peer));
  }

  void change(std::uint32_t peer, UnitRange range) {
    if (state_.range(peer) == range) return;
    changed_.emplace_back(peer, state_.range(peer));
    set(peer, range);
  }

  void undo() {
    while (!changed_.empty()) {
      const auto [peer, range] = changed_.back();
      changed_.pop_back();
      set(peer, range);
    }
  }

  std::uint32_t any_peer() { return movable_[rng_.below(movable_.size())]; }

  // A unit that misses owners, else one with unserved work, else any.
  std::uint32_t needy_unit() {
    std::vector<std::uint32_t>& units = scratch_;
    units.clear();
    const std::vector<double>& unmet = scheduler_.unmet();
    for (std::uint32_t unit = 0; unit < chain_.size(); ++unit) {
      const bool needy = state_.missing() > 0 ? state_.owners(unit) < problem_.floor
                                              : unmet[unit] > 0 || state_.owners(unit) < problem_.replicas;
      if (needy) units.push_back(unit);
    }
    if (units.empty()) return static_cast<std::uint32_t>(rng_.below(chain_.size()));
    return units[rng_.below(units.size())];
  }

  // Of a few peers that fit the unit, the one with the most idle speed.
  std::uint32_t idle_peer(std::uint32_t unit) {
    const std::vector<std::uint32_t>& fitting = fitting_[unit];
    if (fitting.empty()) return any_peer();
    std::uint32_t best = fitting[rng_.below(fitting.size())];
    for (std::uint32_t i = 1; i < tournament; ++i) {
      const std::uint32_t other = fitting[rng_.below(fitting.size())];
      if (idle(other) > idle(best)) best = other;
    }
    return best;
  }

  // A random holder of the unit that may move.
  std::uint32_t holder_of(std::uint32_t unit) {
    std::uint32_t found = any_peer(), seen = 0;
    for (const std::uint32_t peer : fitting_[unit]) {
      if (state_.range(peer).holds(unit) && rng_.below(++seen) == 0) found = peer;
    }
    return found;
  }

  void propose() {
    const std::uint64_t kind = rng_.below(8);
    const std::uint32_t unit = needy_unit();
    if (kind < 3) {
      cover(idle_peer(unit), unit);
    } else if (kind < 4) {
      const auto other = static_cast<std::uint32_t>(rng_.below(chain_.size()));
      cover(idle_peer(other), other);
    } else if (kind < 6) {
      exchange(idle_peer(unit), holder_of(unit));
    } else if (kind < 7) {
      exchange(any_peer(), any_peer());
    } else {
      shift(rng_.below(2) == 0 ? holder_of(unit) : any_peer());
    }
    const std::uint32_t missing = state_.missing();
    if (!limits_.held.empty() && moved_ > limits_.budget && missing >= best_score_.missing) undo();
  }

  // The longest range of a random start that holds the unit.
  void cover(std::uint32_t peer, std::uint32_t unit) {
    std::uint32_t least = unit;
    while (least > 0 && problem_.fits(peer, {least - 1, unit + 1})) --least;
    const std::uint32_t first = least + static_cast<std::uint32_t>(rng_.below(unit - least + 1));
    take(peer, first);
  }

  bool take(std::uint32_t peer, std::uint32_t first) {
    UnitRange range = problem_.longest_from(peer, first);
    if (range.empty()) return false;
    // At the end of the chain the range grows to the left.
    while (range.end == chain_.size() && range.first > 0 && problem_.fits(peer, {range.first - 1, range.end}))
      --range.first;
    change(peer, range);
    return true;
  }

  void exchange(std::uint32_t a, std::uint32_t b) {
    const UnitRange of_a = state_.range(a), of_b = state_.range(b);
    if (a == b || of_a.empty() || of_b.empty() || of_a.first == of_b.first) return;
    if (!take(a, of_b.first) || !take(b, of_a.first)) undo();
  }

  void shift(std::uint32_t peer) {
    const UnitRange range = state_.range(peer);
    if (range.empty()) return;
    const auto by = static_cast<std::uint32_t>(1 + rng_.below(3));
    if (rng_.below(2) == 0) {
      take(peer, range.first > by ? range.first - by : 0);
    } else if (range.first + by < chain_.size()) {
      take(peer, range.first + by);
    }
  }

  const Problem& problem_;
  const Chain& chain_;
  double bound_;
  const SearchLimits& limits_;
  RangeState state_, best_;
  Score best_score_;
  Scheduler scheduler_;
  const double target_gain_;
  Rng rng_;
  double target_ = 0, shortfall_ = 0;
  double hopeless_ = 1;  // states with more shortfall are not tried at a lower rate
  std::uint64_t checked_ = 0;
  std::uint64_t moved_ = 0;  // bytes beyond what is held
  std::vector<Holder> guide_;
  std::vector<std::uint32_t> guide_of_;  // index of a movable peer in it
  std::vector<std::uint32_t> movable_, scratch_;
  std::vector<std::vector<std::uint32_t>> fitting_;           // movable peers that fit each unit
  std::vector<std::pair<std::uint32_t, UnitRange>> changed_;  // with the range before
};

// Whether the state is better than `best`, which then is its score. Most states are not, and one pass shows it.
bool improves(Scheduler& scheduler, const RangeState& state, Score& best) {
  Score score{state.missing(), 0, state.thin()};
  if (score.missing > best.missing) return false;
  if (score.missing < best.missing) {
    best = state.score(scheduler);
    return true;
  }
  const double needed = best.value() * (1 + score.thin) * (1 + 1e-6);
  if (!(needed > 0)) {
    score = state.score(scheduler);
  } else if (scheduler.serves(state.holders(), needed)) {
    score.throughput = scheduler.largest_rate(state.holders(), needed, needed * polish_gain);
  }
  if (!score.better_than(best)) return false;
  best = score;
  return true;
}

}  // namespace

std::uint64_t fetched_bytes(const Chain& chain, UnitRange held, UnitRange range) {
  if (range.empty()) return 0;
  const UnitRange shared{std::max(range.first, held.first), std::min(range.end, held.end)};
  return chain.transfer(range) - (shared.empty() ? 0 : chain.transfer(shared));
}

RangeState search_ranges(const Problem& problem, const RangeState& start, double bound,
                         const SearchLimits& limits) {
  RangeState best = start;
  Score score{std::numeric_limits<std::uint32_t>::max(), 0};
  const std::uint32_t rounds = problem.count <= most_repeated ? passes : 1;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    RangeSearch search(problem, best, bound, limits, round + 1);
    const std::uint64_t steps =
        std::min<std::uint64_t>(most_steps, budget(problem, most_work) / search.step_work()) / rounds;
    RangeState found = search.run(static_cast<std::uint32_t>(limits.effort * static_cast<double>(steps)));
    if (!search.score().better_than(score)) continue;
    score = search.score();
    best = std::move(found);
    if (search.finished()) break;
  }
  return best;
}

namespace {

// Every peer gets every range that fits, from this one on.
void try_all(const Problem& problem, std::uint32_t peer, RangeState& state, Score& score, RangeState& best) {
  if (peer == problem.count) {
    if (state.missing() > score.missing) return;
    const Score found = state.score();
    if (!found.better_than(score)) return;
    score = found;
    best = state;
    return;
  }
  const std::uint32_t size = problem.chain.size();
  bool fits = false;
  for (std::uint32_t first = 0; first < size; ++first) {
    for (std::uint32_t end = first + 1; end <= size && problem.fits(peer, {first, end}); ++end) {
      state.set(peer, {first, end});
      try_all(problem, peer + 1, state, score, best);
      fits = true;
    }
  }
  if (!fits) try_all(problem, peer + 1, state, score, best);
}

}  // namespace

bool all_ranges(const Problem& problem, RangeState& state) {
  if (problem.count > most_peers_of_all) return false;
  double plans = 1;
  for (std::uint32_t peer = 0; peer < problem.count && plans <= most_plans; ++peer) {
    double fitting = 0;
    for (std::uint32_t first = 0; first < problem.chain.size(); ++first)
      fitting += problem.longest_from(peer, first).end - first;
    plans *= std::max(1.0, fitting);
  }
  if (plans > most_plans) return false;
  Score score{std::numeric_limits<std::uint32_t>::max(), 0};
  RangeState tried(problem), best(problem);
  try_all(problem, 0, tried, score, best);
  if (!(score.throughput > 0)) return false;
  state = std::move(best);
  return true;
}

void polish_ranges(const Problem& problem, RangeState& state) {
  if (problem.count > most_polished) return;
  const std::uint32_t size = problem.chain.size();
  Scheduler scheduler(problem.chain);
  Score best = state.score();
  const auto goes_on = [&] { return scheduler.passes() < polish_passes; };
  for (bool better = true; better && goes_on();) {
    better = false;
    std::vector<std::uint32_t> cuts = state.cuts();
    if (size <= short_chain) {
      cuts.resize(size + 1);
      std::iota(cuts.begin(), cuts.end(), 0u);
    }
    for (std::uint32_t peer = 0; peer < problem.count; ++peer) {
      UnitRange own = state.range(peer);
      for (std::size_t first = 0; first + 1 < cuts.size(); ++first) {
        for (std::size_t end = first + 1; end < cuts.size() && goes_on(); ++end) {
          const UnitRange range{cuts[first], cuts[end]};
          if (!problem.fits(peer, range)) break;
          if (range == own) continue;
          state.set(peer, range);
          if (!improves(scheduler, state, best)) continue;
          own = range;
          better = true;
        }
      }
      state.set(peer, own);
      for (std::uint32_t other = peer + 1; other < problem.count && goes_on(); ++other) {
        const UnitRange of_other = state.range(other);
        if (own == of_other || own.empty() || of_other.empty()) continue;
        if (!problem.fits(peer, of_other) || !problem.fits(other, own)) continue;
        state.set(peer, of_other);
        state.set(other, own);
        if (improves(scheduler, state, best)) {
          own = of_other;
          better = true;
        } else {
          state.set(peer, own);
          state.set(other, of_other);
        }
      }
    }
  }
}

void revert_needless(const Problem& problem, const std::vector<UnitRange>& held, double enough,
                     RangeState& state) {
  std::vector<std::uint32_t> moved;
  for (std::uint32_t peer = 0; peer < problem.count; ++peer) {
    if (!held[peer].empty() && !(state.range(peer) == held[peer])) moved.push_back(peer);
  }
  std::stable_sort(moved.begin(), moved.end(), [&](std::uint32_t a, std::uint32_t b) {
    return fetched_bytes(problem.chain, held[a], state.range(a)) >
           fetched_bytes(problem.chain, held[b], state.range(b));
  });
  Scheduler scheduler(problem.chain);
  for (int round = 0; round < revert_rounds; ++round) {
    for (const std::uint32_t peer : moved) {
      const UnitRange range = state.range(peer);
      const std::uint32_t missing = state.missing();
      state.set(peer, held[peer]);
      const double needed = enough * (1 + state.thin());
      if (state.missing() > missing || !scheduler.serves(state.holders(), needed)) state.set(peer, range);
    }
  }
}

}  // namespace neuroshard::plan::detail
