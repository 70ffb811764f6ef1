// Slots on their way to the nodes of a simulated plan. A node fetches one unit after another, from all nodes that give it. A
// source shares its line evenly among the units that others fetch from it; nothing is faster than the fetching node's own
// line.
#pragma once

#include <bitset>
#include <cstdint>
#include <vector>

#include "core/plan/chain.h"

namespace neuroshard::sim {

using UnitSet = std::bitset<plan::most_units>;
UnitSet set_of(plan::UnitRange range);

struct TransferNode {
  double up = 0, down = 0;  // bytes/s
  UnitSet gives;
  UnitSet has;             // complete on its disk
  plan::UnitRange wanted;  // fetched in order
  double progress = 0;     // bytes of the unit being fetched
};

// The first unit that the node still has to fetch; `size` of the chain: none.
std::uint32_t next_unit(const TransferNode& node, std::uint32_t size);

// Lets so many seconds pass. archived: units that the fetching node gets at its own line's speed. Returns the bytes.
double transfer(const plan::Chain& chain, const std::vector<TransferNode*>& nodes, const UnitSet& archived,
                double seconds);

}  // namespace neuroshard::sim
