// The rules of a chain that all nodes of one network share (docs/protocol/chain.md). From the network's
// profile; part of the network id, so two nodes of one network never disagree about it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/clock.h"
#include "core/chain/model_size.h"
#include "core/crypto/keys.h"

namespace neuroshard::chain {

// The wallets that can vote. Values are protocol.
enum class VotersMode : std::uint8_t {
  Invited = 0,   // wallets that a voter vouched for
  Founders = 1,  // the wallets that the genesis names
  Open = 2,      // every wallet, by certified work; unvouched ones hold less than a quarter
};

inline constexpr std::uint32_t units_per_wallet = 12;  // divisible by 1, 2, 3 and 4
inline constexpr std::size_t voting_nodes_per_wallet = 4;
inline constexpr std::size_t max_committee = 512;  // beyond, the beacon draws so many per epoch
// Send everything to each other; more voters: the leader collects votes, a grid relays the rest (relay.h).
inline constexpr std::size_t max_direct_voters = 16;
inline constexpr std::uint64_t statement_life =
    8;  // blocks between a statement's reference and its inclusion
inline constexpr std::size_t evidence_blocks = 64;  // of which evidence may name one as the previous block
inline constexpr std::size_t evidence_rounds = 16;  // of which evidence may name the opening block
inline constexpr std::uint64_t voucher_pause = 8;   // rounds between two admissions by one wallet's vouchers
// With fewer voters a vouched candidate needs one contribution only, all its deltas count, and vouchers are not
// counted per round.
inline constexpr std::size_t few_voters = 4;
inline constexpr std::uint64_t max_clock_lead_ms = 60'000;
// A block of a clock that is further ahead than that is not believed.
constexpr bool is_too_far_ahead(std::uint64_t time_ms, std::uint64_t wall_ms) {
  return time_ms > wall_ms && time_ms - wall_ms > max_clock_lead_ms;
}
// Whether a voter believes the time of the block after one of time before_ms. It takes the least possible time in any
// case: else a wrong clock that led one block would stop the chain until all clocks are there.
constexpr bool is_plausible_time(std::uint64_t time_ms, std::uint64_t before_ms, std::uint64_t wall_ms) {
  return time_ms <= before_ms + 1 || !is_too_far_ahead(time_ms, wall_ms);
}
inline constexpr std::size_t max_members = 65'536;           // of one registry
inline constexpr std::size_t max_wallets = 2 * max_members;  // with those that were expelled
inline constexpr std::size_t max_revocations = 65'536;       // of one registry
inline constexpr std::size_t max_wallet_revocations = 32;    // of one wallet
inline constexpr std::size_t max_rows = 1'024;
// Contributions of candidates that a round takes: a block has room for these, and for those of 18,000 nodes of voters.
inline constexpr std::size_t max_candidates = 4'096;
// Numbers that all vectors of a close list together, 32 MiB in memory. A body has no room for as many
// contributions as would take more.
inline constexpr std::size_t max_listed = 8u << 20;
inline constexpr std::size_t max_block_statements = 256;
inline constexpr std::size_t max_block_evidence = 64;
// A message has at most 4 MiB (core/net/peer_channel.h); signatures and an earlier lock go with a body.
inline constexpr std::size_t max_body_bytes = (4u << 20) - (256u << 10);
inline constexpr std::uint64_t return_right_ms =
    30ull * 24 * 3600 * 1000;  // a dormant voter's right to come back
// An active member without units is dormant after so many rounds without a contribution, and at least so many blocks.
inline constexpr std::uint64_t quiet_rounds = 4;
inline constexpr std::uint64_t quiet_blocks = 16;
// Of an offer: 131 TB, so the sum over all members is a number of bytes in 64 bits.
inline constexpr std::uint32_t most_memory_tiers = 1u << 18;
// Between two offers of memory by a member. Longer than statement_life, so an earlier one can't be shown again.
inline constexpr std::uint64_t offer_pause_blocks = 16;
inline constexpr std::uint64_t seen_window_ms = 7ull * 24 * 3600 * 1000;

struct ChainRules {
  Hash256 network{};
  VotersMode voters = VotersMode::Invited;
  std::vector<crypto::PublicKey> founders;  // wallets, ascending, that a genesis may name; empty: any
  std::uint32_t rows = 1;                   // slots of the model, numbered from 0
  // Round r closes the rows i with i mod fragments = r mod fragments. Either as many as there are rows, and each
  // member holds all of them; or 1, and a member may hold some of the rows only.
  std::uint32_t fragments = 1;
  // Of the model, after the first; needs fragments = 1. None: the model keeps its size.
  std::vector<SizeNeeds> sizes;
  std::uint64_t most_tokens = 1;  // that one member can train in a round
  std::uint32_t admission_contributions = 8;
  std::size_t most_candidates = max_candidates;  // of a round (core/rounds/contributor_lot.h)
  std::uint32_t epoch_rounds = 64;
  std::uint64_t epoch_least_ms = 24ull * 3600 * 1000;
  Duration block_time = std::chrono::seconds(60);
  Duration stall_after = std::chrono::minutes(10);
  Duration silent_after = std::chrono::minutes(3);  // and at least three block times
  Duration heartbeat = std::chrono::seconds(60);

  bool may_found(const crypto::PublicKey& wallet) const {
    return founders.empty() || std::binary_search(founders.begin(), founders.end(), wallet);
  }
  // Members may hold some of the rows only; whoever does not hold a row judges it by attestations.
  bool has_holders() const { return rows > 1 && fragments == 1; }
  // Rows that round `round` closes, ascending.
  std::vector<std::uint32_t> rows_of(std::uint64_t round) const {
    std::vector<std::uint32_t> closed;
    for (std::uint32_t row = static_cast<std::uint32_t>(round % fragments); row < rows; row += fragments)
      closed.push_back(row);
    return closed;
  }
};

}  // namespace neuroshard::chain
