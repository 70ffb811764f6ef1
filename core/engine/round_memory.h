// State that a training with error feedback must keep over a restart, although no checkpoint has it: which
// delta it gave last, and what of its work the network has not seen yet (outer/error_feedback.h). It belongs
// to the node's contributions, not to its weights, so it is kept with them (D/rounds/learner): whichever
// checkpoint a restart goes on from, what was sent is not sent again, and what was not is not lost.
//
//   "NSRLRN1\0" · round u64 · SHA-256 of the round's first weights · steps u32 · tokens u64 · bytes of the
//   payload u64 · values u64 · payload · buffer fp32 · SHA-256 of all before; little-endian
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/base/span.h"
#include "core/rounds/learner.h"

namespace neuroshard::engine {

struct RoundMemory {
  std::uint64_t round = 0;  // whose delta was given
  Hash256 anchor{};         // RoundPlace::anchor
  rounds::TrainedWork work;
  Bytes payload;
  std::vector<float> buffer;  // of the error feedback, after the payload
};

// The buffer is given apart, because it is large.
Bytes encode_round_memory(const RoundMemory& memory, Span<const float> buffer);
// Corrupt: damaged, or not such a memory. Sizes are checked before anything is allocated.
Expected<RoundMemory> decode_round_memory(ByteSpan bytes);

}  // namespace neuroshard::engine
