// The memory of a training process: plans it before anything big exists, watches it while training runs
// (docs/protocol/model.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/expected.h"
#include "core/compute/memory_estimate.h"
#include "core/compute/model_shape.h"
#include "core/train/memory_plan.h"

namespace neuroshard::engine {

struct TrainingMemoryRequest {
  compute::ModelShape shape;
  compute::Precision precision = compute::Precision::Fp32;
  bool training = true;           // false: weights only, for generation
  std::uint64_t data_bytes = 0;   // token shards
  std::uint64_t outer_bytes = 0;  // outer_round_bytes() where rounds run
  std::uint64_t user_limit = 0;   // the setting; 0 = what the machine has free
  std::uint32_t max_micro_batch = train::default_max_micro_batch;
  std::uint32_t sequences_per_step = 1;
  std::uint32_t threads = 1;
  std::uint64_t least_resident = 0;  // before the compute module is loaded: with_module_bytes, else 0
};

// The process with a compute module loaded is at least this large: LibTorch and oneDNN. Measured 165 to 190
// MiB.
inline constexpr std::uint64_t with_module_bytes = 160u << 20;

// The memory of outer rounds for a model of P parameters beside its training, at most: weights and momentum
// of the anchor, of the one before (for those who fetch it) and of the one that is being computed; the
// payloads of four contributors, a slice of their deltas and the aggregate; the weights and the delta of the
// own boundary; the buffer of error feedback, and what is written of it.
std::uint64_t outer_round_bytes(std::uint64_t parameters, bool error_feedback);

struct TrainingMemory {
  train::MemoryPlan plan;
  std::uint64_t tensor_bytes = 0;  // what the compute module's tensors may take: its memory limit
};

// Call before the stage exists: what is resident now, or least_resident, is the plan's baseline. Errors:
// Exhausted says how many MiB are missing and what to change.
Expected<TrainingMemory> plan_training_memory(const TrainingMemoryRequest& request);

// Looks at the resident size after each step. Above the limit, it first gives freed memory back, then asks
// for smaller micro-batches.  Threads: one.
class MemoryWatch {
 public:
  // limit 0: never complains.
  explicit MemoryWatch(std::uint64_t limit) : limit_(limit) {}

  // The micro-batch for the next step, at most `micro_batch`; *note says why when it is smaller or nothing
  // helps, once.
  std::uint32_t check(std::uint32_t micro_batch, std::optional<std::string>* note);

 private:
  std::uint64_t limit_;
  bool told_ = false;
};

}  // namespace neuroshard::engine
