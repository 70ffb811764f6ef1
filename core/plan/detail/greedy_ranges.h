// A first choice of ranges: one peer after another takes the window that has the most unserved work.
#pragma once

#include <vector>

#include "core/plan/detail/range_state.h"

namespace neuroshard::plan::detail {

// Each peer by descending speed takes the window with the most unserved work. bound: tokens/s that no plan exceeds.
RangeState greedy_ranges(const Problem& problem, double bound);

// The held ranges, and for all other peers windows with the most work that is not served at the rate.
RangeState with_newcomers(const Problem& problem, const std::vector<UnitRange>& held, double rate);

}  // namespace neuroshard::plan::detail
