// The largest plan that fits into the user's memory limit, decided before anything big is allocated
// (docs/protocol/model.md, 15). The limit is hard: the resident size stays at or below limit + 5 %, so
// everything that will be resident is a line of this plan.
#pragma once

#include <cstdint>

#include "core/base/expected.h"

namespace neuroshard::train {

// Share of the memory left after the fixed parts that activations may take; the rest is head room for what
// estimates don't see: fragments of the allocator, temporaries, page cache of mapped libraries.
inline constexpr double activation_share = 0.3;
// The most sequences in one micro-batch unless a setting says fewer: beyond it, products don't get faster on
// a CPU.
inline constexpr std::uint32_t default_max_micro_batch = 8;

// Bytes. Unknown values are 0.
struct MemoryNeeds {
  std::uint64_t baseline =
      0;  // resident size of the process with the compute module loaded, before the stage exists
  std::uint64_t parameters = 0;  // master weights, and packed copies where the device keeps them
  std::uint64_t gradients = 0;
  std::uint64_t moments = 0;
  std::uint64_t snapshot_whole = 0;  // a copy of weights and moments, held while a checkpoint is written
  std::uint64_t snapshot_slot = 0;   // the same for the largest slot alone, when slots are written one by one
  std::uint64_t data = 0;            // token shards and batches in memory
  std::uint64_t margin = 0;          // whatever the caller wants to keep free
  std::uint64_t workspace = 0;       // activations that do not grow with the micro-batch
  std::uint64_t activation_per_sample = 0;  // of one training sequence, forward and backward, > 0
  // Of a pipeline, a sample is a micro-batch. So many of them may wait for their weights' gradients, each with so much more.
  std::uint32_t most_deferred = 0;
  std::uint64_t deferred_per_sample = 0;
};

struct MemoryPlan {
  std::uint32_t micro_batch = 1;
  bool whole_snapshot =
      true;  // false: slots are copied and written one by one, and training waits for the write
  std::uint64_t limit = 0;
  std::uint64_t fixed = 0;      // everything but activations
  std::uint64_t available = 0;  // limit − fixed, for activations
  // Resident at the peak: the fixed parts without the margin, and the activations of the micro-batch.
  std::uint64_t expected = 0;
};

// min(max_micro_batch, floor(0.3 · available / per sample)), at least 1.
std::uint32_t choose_micro_batch(std::uint64_t available, std::uint64_t activation_per_sample,
                                 std::uint32_t max_micro_batch);

// Of so many samples at once.
std::uint64_t activation_bytes(const MemoryNeeds& needs, std::uint32_t samples);

// The best plan under `limit` bytes: the whole snapshot if it fits beside one sample, else slot by slot.
// Errors: Exhausted when even one sample does not fit; the message says how many MiB are missing and what to
// change. InvalidArgument when limit, max_micro_batch or activation_per_sample is 0.
Expected<MemoryPlan> plan_memory(const MemoryNeeds& needs, std::uint64_t limit,
                                 std::uint32_t max_micro_batch = default_max_micro_batch);

}  // namespace neuroshard::train
