// Registries as they would be after the next block if one member offered another amount of memory or had left, and the votes that
// others would have without it: for people who ask what a decision would change. All rules apply to such a registry as to any other
// one.
//
// Pure functions. member: number in the registry. Cost: a copy of the registry, and its root. Threads: any.
#pragma once

#include <cstdint>

#include "core/chain/registry.h"

namespace neuroshard::chain {

// Although it may have made another offer a moment ago.
RegistryPtr with_offer(const ChainRules& rules, const Registry& registry, std::uint32_t member,
                       std::uint32_t memory_tiers);
// Its membership is over. Afterwards there may be nobody who votes.
RegistryPtr without_member(const ChainRules& rules, const Registry& registry, std::uint32_t member);

// On the next block, if the member ends without a word: the others still count its units. In units.
struct VotesWithout {
  std::uint64_t all = 0, others = 0;
  // That the others lack to certify a block, all of them voting: at once, and once the height is stalled.
  std::uint64_t lacking_at_once = 0, lacking_after_stall = 0;
};
VotesWithout votes_without(const ChainRules& rules, const Registry& registry, std::uint32_t member);

}  // namespace neuroshard::chain
