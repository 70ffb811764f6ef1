// The owners of a plan's units among simulated nodes: who serves each unit, and which nodes may go over to other ranges
// without leaving a unit to too few owners. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/chain.h"

namespace neuroshard::sim {

struct ServedRange {
  plan::UnitRange range;
  std::uint32_t owner = 0;  // numbers from 0 on, without gaps
};
// Of each of the `units`: how many different owners serve it.
std::vector<std::uint32_t> count_owners(const std::vector<ServedRange>& served, std::uint32_t units);

// A node that serves a range, and goes over to another one if it may.
struct RangeSwitch {
  plan::UnitRange serving, wanted;
  std::uint32_t owner = 0;
  bool goes = false;
};
// Lets one node after the other stay, in their order, until no node that goes leaves a unit with fewer than
// plan::least_replicas owners.
void keep_replicas(std::vector<RangeSwitch>* nodes, std::uint32_t units);

}  // namespace neuroshard::sim
