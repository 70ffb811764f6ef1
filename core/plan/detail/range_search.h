// The search for ranges from a first choice (recreate_ranges.h): threshold accepting (Dueck, Scheuer 1990).
//
// Throughput alone is a poor guide, because most single changes leave it as it is. So the search lowers the work that is
// not served at a target a little above the best throughput so far; at 0 the target rises. A holder always takes the
// longest range from its first unit: a longer one serves at least as much. Steps are counted, so the same input gives
// the same result everywhere.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/detail/range_state.h"

namespace neuroshard::plan::detail {

struct SearchLimits {
  std::vector<std::uint8_t> movable;  // peers whose range may change; empty: all
  // Present ranges; bytes fetched beyond them cost a little throughput in the comparison, and stay within the budget
  // except where they give a unit an owner that it misses. Empty: nothing is held.
  std::vector<UnitRange> held;
  std::uint64_t budget = 0;
  double bytes_weight = 0;  // part of the throughput that fetching the whole chain once may cost
  double effort = 1;        // part of the steps
  double enough = 0;        // value of the score at which the search ends
};

RangeState search_ranges(const Problem& problem, const RangeState& start, double bound,
                         const SearchLimits& limits);

// For at most 14 peers with very few ranges: the best of all plans. False: there are too many, or no plan holds every unit.
bool all_ranges(const Problem& problem, RangeState& state);

// For few peers: any range between cuts, or any at all in a short chain, that raises the score by itself. Counted.
void polish_ranges(const Problem& problem, RangeState& state);

// Gives peers their held ranges back as long as the score's value stays at `enough` and no more owners
// are missing.
void revert_needless(const Problem& problem, const std::vector<UnitRange>& held, double enough,
                     RangeState& state);

// Bytes that a peer fetches for `range` when it holds `held`.
std::uint64_t fetched_bytes(const Chain& chain, UnitRange held, UnitRange range);

}  // namespace neuroshard::plan::detail
