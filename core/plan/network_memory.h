// Which models the members of a network would have the memory for, where each of them holds the whole model or one of the parts that
// the profile fixes (docs/protocol/placement.md, "Memory of a network"). Of networks whose model keeps its size: for others the chain
// counts (chain/size_demand.h).
//
// Pure functions: nodes with the same facts find the same. Threads: any.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/plan/architecture.h"

namespace neuroshard::plan {

// So many percent of the members have to have the memory for a larger model.
inline constexpr std::uint32_t members_with_room_percent = 75;

struct ModelSize {
  compute::ModelShape shape;
  std::uint64_t member_bytes = 0;  // that each member needs
};
// The minimum of the rules first, then shapes of their ladder, each the smallest with enough parameters more for an upgrade
// from the one before. rules: valid.
std::vector<ModelSize> model_sizes(
    const GrowthRules& rules, const std::function<std::uint64_t(const compute::ModelShape&)>& member_bytes);

struct NetworkMemory {
  std::uint64_t offered_bytes = 0;  // by all members
  std::size_t known = 0;            // members that say what they offer
  std::size_t needs_room = 0;       // so many members have to have room for a larger model
  // Of the sizes: the largest one that enough members have room for, at least the present one. The next one, if there is one, is
  // what they lack memory for.
  std::size_t possible = 0;
};
// present: index of the size that the network trains. offered: bytes by member; 0: not said.
NetworkMemory network_memory(const std::vector<ModelSize>& sizes, std::size_t present,
                             const std::vector<std::uint64_t>& offered);
std::size_t members_with_room(const ModelSize& size, const std::vector<std::uint64_t>& offered);

}  // namespace neuroshard::plan
