// The memory of a training process: plans it before the large allocations and watches it during the training
// (docs/protocol/model.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/expected.h"
#include "core/compute/memory_estimate.h"
#include "core/compute/model_shape.h"
#include "core/compute/stage_range.h"
#include "core/outer/codec.h"
#include "core/train/memory_plan.h"

namespace neuroshard::engine {

struct TrainingMemoryRequest {
  compute::ModelShape shape;
  compute::StageRange range;  // of the shape: the layers that this node holds
  compute::Precision precision = compute::Precision::Fp32;
  bool training = true;           // false: weights only, for generation
  std::uint64_t data_bytes = 0;   // token shards
  std::uint64_t outer_bytes = 0;  // outer_round_bytes() where rounds run
  std::uint64_t user_limit = 0;   // the setting; 0 = what the machine has free
  std::uint32_t max_micro_batch = train::default_max_micro_batch;
  std::uint32_t sequences_per_step = 1;
  // Of a pipeline: so many sequences are a micro-batch, and the plan says how many micro-batches a stage may hold at once, at
  // most max_micro_batch and a step's.
  std::uint32_t sequences_together = 1;
  std::uint32_t threads = 1;
  std::uint64_t least_resident = 0;  // before the compute module is loaded: with_module_bytes, else 0
};

// The process with a compute module loaded is at least this large: LibTorch and oneDNN. Measured 165 to 190
// MiB.
inline constexpr std::uint64_t with_module_bytes = 160u << 20;

// The most that the spool of a network's rounds keeps in memory: all payloads and anchors of a small model.
inline constexpr std::uint64_t round_spool_memory = 64u << 20;

// How a model takes part in outer rounds.
struct RoundShape {
  std::uint64_t parameters = 0;
  std::uint32_t fragments = 1;  // in which it is synchronised
  outer::CodecOptions codec;
  bool error_feedback = false;
};
// The most memory of outer rounds beside the training: the items that the spool has room for in memory; of each
// contributor of a sub-group a slice of its delta and windows of its payload; slices of weights and anchors; with
// error feedback, the values that the codec selects and their payload.
std::uint64_t outer_round_bytes(const RoundShape& shape);

struct TrainingMemory {
  train::MemoryPlan plan;
  std::uint64_t tensor_bytes = 0;  // the compute module's memory limit, for its tensors
  std::uint64_t spare_bytes = 0;   // half of what no activation is planned for
  train::MemoryNeeds needs;        // that the plan was made for
  std::uint32_t sequences_together = 1;

  // For a person: the expected peak and its parts.
  std::string describe() const;
};

// Call before the stage exists: the larger of the resident size and least_resident is the plan's baseline.
// Errors: Exhausted names the missing MiB and what to change.
Expected<TrainingMemory> plan_training_memory(const TrainingMemoryRequest& request);

// The micro-batch, at most `most`, of a process that trains by this plan already, under another limit of the
// user.  Errors: as above.
Expected<std::uint32_t> plan_micro_batch(const TrainingMemory& memory, std::uint64_t user_limit,
                                         std::uint32_t most);

// The expected peak without a limit, and the margin, of a process with a compute module. Pure: without this process's own size.
std::uint64_t unlimited_training_bytes(const TrainingMemoryRequest& request);

// Checks the resident size after each step. Above the limit, it first returns freed memory to the system,
// then requests smaller micro-batches.  Threads: one.
class MemoryWatch {
 public:
  // limit 0: no limit.
  explicit MemoryWatch(std::uint64_t limit) : limit_(limit) {}

  // The micro-batch for the next step, at most `micro_batch`; *note gives the reason once, when it is smaller
  // or can't be.
  std::uint32_t check(std::uint32_t micro_batch, std::optional<std::string>* note);

 private:
  std::uint64_t limit_;
  bool told_ = false;
};

}  // namespace neuroshard::engine
