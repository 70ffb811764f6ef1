// State that training with error feedback must keep across a restart, although no checkpoint has it: its last
// delta, and the part of its work that the network has not received yet (outer/error_feedback.h). It belongs
// to the node's contributions, not to its weights, so it is kept with them (D/chain/own/learners): from whichever
// checkpoint a restart continues, the node sends no work twice and loses no unsent work.
//
//   "NSRLRN1\0" · round u64 · SHA-256 of the round's first weights · steps u32 · tokens u64 · bytes of the
//   payload u64 · values u64 · payload · buffer fp32 · SHA-256 of all before; little-endian
#pragma once

#include <cstdint>

#include "core/base/byte_source.h"
#include "core/rounds/learner.h"

namespace neuroshard::engine {

struct RoundMemory {
  std::uint64_t round = 0;  // the round of that delta
  Hash256 anchor{};         // RoundPlace::anchor
  rounds::TrainedWork work;
  ByteSourcePtr payload;  // null: nothing to restore
  ByteSourcePtr buffer;   // the error feedback's, after the payload
};

// Reads payload and buffer once, and refers to them.  Errors: those of reading them.
Expected<ByteSourcePtr> encode_round_memory(const RoundMemory& memory);
// Refers to the bytes.  Corrupt: damaged, or not in this format.
Expected<RoundMemory> decode_round_memory(const ByteSourcePtr& bytes);

}  // namespace neuroshard::engine
