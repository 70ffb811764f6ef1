// The parts that members have in a round, by the chain: who computes the new anchors, who has them for others, and
// whose contributions are expected. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/chain/committee.h"
#include "core/rounds/contributor_lot.h"

namespace neuroshard::rounds {

// In a small network everybody does. In a large one the new anchor is far less than all payloads, so the members that
// don't vote fetch it.
bool computes_rows(const chain::Committee& committee, const net::NodeId& self);

// Voters that hold the row, without this node. Of a large committee at most `most_anchor_sources`, others for each
// node.
inline constexpr std::size_t most_anchor_sources = 16;
std::vector<net::NodeId> anchor_sources(const chain::Committee& committee, const net::NodeId& self,
                                        std::uint32_t row);

// Active members that contributed to one of the last three rounds with a result, or are new: a member that has never contributed is
// expected for `new_for_blocks` blocks. Without those that the lot leaves out.
inline constexpr std::uint64_t new_for_blocks = 16;
std::size_t expected_members(const chain::Registry& registry, const ContributorLot& lot = {});

// Contributors that a round takes at most (core/chain/rights.h): active nodes that vote, those of trusted wallets, and
// of all others a quarter of the voters' number. Anybody can register nodes, so their number alone takes no room.
std::size_t most_contributors(const chain::Registry& registry);
// Of a wallet without a vote that nobody vouched for. Once the round is closed: that no row takes, besides.
bool is_candidate(const chain::Registry& registry, std::uint32_t member);
// Candidates' payloads that a node fetches at once.
std::size_t most_candidates_at_once(const chain::Registry& registry);

}  // namespace neuroshard::rounds
