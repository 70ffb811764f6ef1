// Ranges of all peers, with the owners of each unit counted as ranges change.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/detail/problem.h"
#include "core/plan/schedule.h"

namespace neuroshard::plan::detail {

class RangeState {
 public:
  explicit RangeState(const Problem& problem);  // all empty
  RangeState(const Problem& problem, const std::vector<UnitRange>& ranges);

  UnitRange range(std::uint32_t peer) const { return holders_[peer].range; }
  const std::vector<Holder>& holders() const { return holders_; }
  void set(std::uint32_t peer, UnitRange range);  // it fits, or is empty
  std::uint32_t owners(std::uint32_t unit) const { return distinct_[unit]; }
  std::uint32_t missing() const { return missing_; }  // as in Score
  double thin() const { return static_cast<double>(thin_) / problem_->chain.size(); }
  Score score() const;
  Score score(Scheduler& scheduler) const;  // counts its passes there
  // Ends of ranges and of the chain, ascending.
  std::vector<std::uint32_t> cuts() const;

 private:
  void count(std::uint32_t peer, UnitRange range, bool add);

  const Problem* problem_;
  std::vector<Holder> holders_;
  std::vector<std::uint32_t> owned_;     // [unit][owner]
  std::vector<std::uint32_t> distinct_;  // of each unit
  std::uint32_t missing_ = 0, thin_ = 0;
};

}  // namespace neuroshard::plan::detail
