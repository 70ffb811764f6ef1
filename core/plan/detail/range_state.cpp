#include "core/plan/detail/range_state.h"

namespace neuroshard::plan::detail {

RangeState::RangeState(const Problem& problem)
    : problem_(&problem),
      owned_(std::size_t{problem.chain.size()} * problem.owners, 0),
      distinct_(problem.chain.size(), 0),
      missing_(problem.chain.size() * problem.missing(0)),
      thin_(problem.chain.size() * (problem.replicas - problem.floor) *
            (problem.replicas - problem.floor + 1) / 2) {
  for (std::uint32_t peer = 0; peer < problem.count; ++peer)
    holders_.push_back({{}, problem.speed[peer], problem.line[peer]});
}

RangeState::RangeState(const Problem& problem, const std::vector<UnitRange>& ranges) : RangeState(problem) {
  for (std::uint32_t peer = 0; peer < problem.count; ++peer) set(peer, ranges[peer]);
}

void RangeState::set(std::uint32_t peer, UnitRange range) {
  count(peer, holders_[peer].range, false);
  holders_[peer].range = range;
  count(peer, range, true);
}

void RangeState::count(std::uint32_t peer, UnitRange range, bool add) {
  for (std::uint32_t unit = range.first; unit < range.end; ++unit) {
    std::uint32_t& owned = owned_[std::size_t{unit} * problem_->owners + problem_->owner[peer]];
    if (add) {
      if (owned++ > 0) continue;
      const std::uint32_t owners = distinct_[unit]++;
      missing_ -= problem_->missing(owners) - problem_->missing(owners + 1);
      thin_ -= problem_->thinness(owners);
    } else {
      if (--owned > 0) continue;
      const std::uint32_t owners = --distinct_[unit];
      missing_ += problem_->missing(owners) - problem_->missing(owners + 1);
      thin_ += problem_->thinness(owners);
    }
  }
}

Score RangeState::score() const {
  Scheduler scheduler(problem_->chain);
  return score(scheduler);
}

Score RangeState::score(Scheduler& scheduler) const {
  return {missing_, scheduler.best(holders_).throughput, thin()};
}

std::vector<std::uint32_t> RangeState::cuts() const {
  const std::uint32_t size = problem_->chain.size();
  std::vector<std::uint8_t> used(size + 1, 0);
  used[0] = used[size] = 1;
  for (const Holder& holder : holders_) {
    if (!holder.range.empty()) used[holder.range.first] = used[holder.range.end] = 1;
  }
  std::vector<std::uint32_t> cuts;
  for (std::uint32_t unit = 0; unit <= size; ++unit) {
    if (used[unit] != 0) cuts.push_back(unit);
  }
  return cuts;
}

}  // namespace neuroshard::plan::detail
