// A node's height, and what it holds of the asking node: its newest heartbeat and its last signatures. A node
// that starts compares that with its own disk (restart_guard.h).
//
//   request  nothing: the asking node has no history; or asks u8 (1: for what it signed) · its heartbeat
//   answer   genesis 32 · height u64 · tip 32 · round u64 · first height u64 · view u32 · awaits genesis u8 ·
//            of the asking node, each with 0 or 1 before it: heartbeat · vote · contribution, as an entry ·
//            vector: hash of its content 32, signature 64. Before the vote it is 2 or 3 if votes were forgotten
//
// Canonical bytes; no signature is checked here. Threads: any. Errors: Corrupt.
#pragma once

#include <cstdint>
#include <optional>

#include "core/chain/messages.h"

namespace neuroshard::chain {

struct StatusRequest {
  bool asks_signed = false;
  std::optional<Heartbeat> asker;
  friend bool operator==(const StatusRequest&, const StatusRequest&) = default;
};
Bytes encode_status_request(const StatusRequest& request);
Expected<StatusRequest> decode_status_request(ByteSpan bytes);

// A member's signatures, as another one holds them: its vote of the highest view of the next height, its
// contribution to the round in progress and its vector of that round.
struct SignedByMember {
  std::optional<SignedVote> vote;
  std::optional<ContributionEntry> contribution;
  std::optional<VectorClaim> vector;  // opening block, round and voter do not travel: the place is the tip's
  friend bool operator==(const SignedByMember&, const SignedByMember&) = default;
};

struct ChainStatus {
  Hash256 genesis{};  // zeros: no history yet
  std::uint64_t height = 0;
  Hash256 tip{};
  std::uint64_t round = 0;
  std::uint64_t first_height = 0;       // of the blocks that it can give
  std::uint32_t view = 0;               // of the next height, once its block is due
  bool awaits_genesis = false;          // wants to begin; has no history
  std::optional<Heartbeat> asker = {};  // the newest that it has of the asking node
  SignedByMember of_asker = {};
  bool forgot_votes = false;  // that it took at the next height; the asking node's may be among them
  friend bool operator==(const ChainStatus&, const ChainStatus&) = default;
};
Bytes encode_status(const ChainStatus& status);
Expected<ChainStatus> decode_status(ByteSpan bytes);

}  // namespace neuroshard::chain
