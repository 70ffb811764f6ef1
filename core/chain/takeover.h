// The number of false wallets that stop or own a network, and the rounds until these are voters
// (docs/protocol/chain.md), for people who choose the voters of a new network. Pure.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/chain/rules.h"

namespace neuroshard::chain {

// Without the false wallets the honest ones are no full quorum any more.
std::size_t wallets_to_freeze(std::size_t honest);
// The false wallets are a full quorum.
std::size_t wallets_to_own(std::size_t honest);
// Rounds until so many false wallets can be voters that count fully. All train from round 1 on, one voter vouches
// for the first of them, and each vouches for the next one. So only the number of admissions in a round delays
// them.
std::uint64_t least_rounds_to_vote(const ChainRules& rules, std::size_t honest, std::size_t wallets);

}  // namespace neuroshard::chain
