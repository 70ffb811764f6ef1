// A first choice of ranges: ruin and recreate (Schrimpf et al. 2000).
//
// A few peers lose their ranges, and one after another takes again the window in which it lowers the cost most (filling.h).
// The target lies a little above the unit that is served least. A change stays if it does not raise the cost, or raises it
// little; in the end, only if it does not. A step fills a few windows and computes no schedule of all holders, so many more
// are tried than in range_search.h. Steps are counted: the same input gives the same result everywhere.
#pragma once

#include <vector>

#include "core/plan/detail/range_state.h"

namespace neuroshard::plan::detail {

// bound: tokens/s that no plan exceeds. effort: part of the steps. Every peer that fits a unit gets a range.
RangeState recreate_ranges(const Problem& problem, double bound, double effort, std::uint64_t seed);

// The best of a few targets at which every peer, the fastest first, takes the window in which it lowers the cost most.
RangeState place_ranges(const Problem& problem, double bound);

// The held ranges, and for all other peers windows that serve what is lacking at the rate.
RangeState with_newcomers(const Problem& problem, const std::vector<UnitRange>& held, double rate);

}  // namespace neuroshard::plan::detail
