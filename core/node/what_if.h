// The changes that would follow in a node's network, if the node offered another amount of memory or left. Plain values: a
// question of the seam (member_decisions.h) and its answer.
#pragma once

#include <cstdint>
#include <optional>

#include "core/node/snapshot.h"

namespace neuroshard::node {

struct WhatIfQuery {
  // That this node would offer; whole 500 MB count. Nothing: it leaves for good, and nobody counts on it any more.
  std::optional<std::uint64_t> memory_bytes;
};

// The memory that the members offer, and what follows from it.
struct MemoryOutlook {
  NetworkMemoryView memory;
  // Of a model that can change: the size that this memory asks for. The network changes after results_needed results in a row.
  SizeChange asks = SizeChange::None;
  // When the memory asks for a smaller model: what the present model lacks. Else what the next larger one lacks.
  std::uint64_t lacking_bytes = 0;    // of all members together
  std::uint32_t lacking_members = 0;  // that would have to have room
};

// The part of the model that this node holds, without it.
struct PartWithout {
  std::uint32_t number = 0, count = 0;  // from 1; of all parts
  std::uint32_t nodes = 0;              // that would hold it, fetch it or sleep with it
  std::uint32_t wallets = 0;            // of those that would hold or fetch it
  std::uint32_t moves_from = 0;         // by the plan a node would move to it from this part; 0: none
  // It was trained, nobody who is awake would have it, and so nobody could fetch it.
  bool waits = false;
};

// The votes on the next block, without this node. Units are parts of votes: 12 of each wallet.
struct VotesWithout {
  std::uint32_t all_units = 0, other_units = 0;
  bool nobody = false;  // nobody else has a vote
  // Whole votes that the others would lack if this node ended without a word, all of them voting: at once, and after the wait for
  // members that don't answer. A node that says that it leaves takes its vote out of the count.
  std::uint32_t lacking_at_once = 0, lacking_after_wait = 0;
};

struct WhatIf {
  // The others count this node's offer. Not yet: it has no vote, and needs one for that; or it is away.
  bool counts = false;
  MemoryOutlook now, then;
  // Of a node that would leave.
  std::optional<PartWithout> part;    // nothing: all members hold the whole model, or this node holds none
  std::optional<VotesWithout> votes;  // nothing: this node has no vote on the next block
};

}  // namespace neuroshard::node
