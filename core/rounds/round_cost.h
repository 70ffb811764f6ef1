// The bytes of a round on a node's disk and line: a pure function of the model and the network's rules.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/outer/codec.h"

namespace neuroshard::rounds {

struct RoundShape {
  std::uint64_t values = 0;  // of the row that the round closes
  outer::CodecOptions codec;
  bool error_feedback = false;
  std::size_t contributors = 1;    // this node included
  std::size_t group_members = 16;  // of a sub-group
  bool taken_back = false;  // rows can be: the node keeps anchors and payloads of a round more, and traces
};

// Bytes, at most. Blocks, votes and lists of batches are small, and are in `kept` with a fixed allowance.
struct RoundCost {
  std::uint64_t kept = 0;                // written to files that a restart needs: anchor, own contribution
  std::uint64_t temporary = 0;           // written to files without a name
  std::uint64_t resident = 0;            // of all files without a name that exist at once, across rounds
  std::uint64_t sent = 0, received = 0;  // payloads
};
RoundCost round_cost(const RoundShape& shape);
// Bytes that a node writes whose spool keeps so many bytes in memory.
std::uint64_t written_bytes(const RoundCost& cost, std::uint64_t spool_memory);

}  // namespace neuroshard::rounds
