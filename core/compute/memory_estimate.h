// How much memory a model needs, before any of it is allocated. Exact for the flat buffers; for activations
// the sum of what core/model keeps for the backward pass and of its largest scratch, within 20 % of the
// measured peak (a test compares). C++17, no Torch.
#pragma once

#include <cstdint>

#include "core/compute/model_shape.h"
#include "core/compute/stage.h"

namespace neuroshard::compute {

// In bf16, activations take half, and each matrix has packed copies beside its fp32 parameters.
enum class Precision : std::uint8_t { Fp32, Bf16 };

struct MemoryEstimate {
  std::uint64_t parameters = 0;  // bytes, as all fields
  std::uint64_t packed = 0;
  std::uint64_t gradients = 0;
  std::uint64_t moments = 0;
  std::uint64_t total() const { return parameters + packed + gradients + moments; }
};
// The flat buffers of a whole model on one node; gradients and moments only when it trains.
MemoryEstimate estimate_memory(const ModelShape& shape, Precision precision, bool trainable);
// The same for the range of slots of one stage, with the experts that it holds; `trainable` is the spec's.
MemoryEstimate estimate_memory(const StageSpec& spec, Precision precision);

// One sequence of a training micro-batch through all layers of the shape, embedding and head included. A
// micro-batch of b sequences takes b times this, plus estimate_workspace_bytes.
std::uint64_t estimate_activation_bytes_per_sample(const ModelShape& shape, Precision precision,
                                                   std::uint32_t sequence);
// The same for one stage. A stage without an end of the model has buffers for the activations that cross its boundary
// there, and for their gradients; the whole model has none.
std::uint64_t estimate_activation_bytes_per_sample(const StageSpec& spec, Precision precision,
                                                   std::uint32_t sequence);
// The bytes that Stage::backward_input keeps of a micro-batch of so many tokens until Stage::backward_weights, within 3 %.
// During the call they come on top of the micro-batch's activations at most. The head adds the gradient of all logits,
// the embedding that of its rows.
std::uint64_t estimate_deferred_bytes(const StageSpec& spec, Precision precision, std::uint64_t tokens);
// Of a stage of a pipeline, for micro-batches of so many tokens.
struct PipelineEstimate {
  std::uint64_t kept = 0;      // of each, from forward() to backward_input()
  std::uint64_t deferred = 0;  // of each, from then on until backward_weights()
  std::uint64_t passing = 0;   // of the one that runs, on top: a layer's scratch, the boundary's buffers
};
PipelineEstimate estimate_pipeline_bytes(const StageSpec& spec, Precision precision, std::uint64_t tokens);
// The part that does not grow with the micro-batch: chunks of logits, scratch of the attention.
std::uint64_t estimate_workspace_bytes(const ModelShape& shape, Precision precision, std::uint32_t sequence,
                                       std::uint32_t threads);
std::uint64_t estimate_workspace_bytes(const StageSpec& spec, Precision precision, std::uint32_t sequence,
                                       std::uint32_t threads);
// A generation session's keys and values.
std::uint64_t estimate_session_bytes(const ModelShape& shape, Precision precision, std::uint32_t capacity);

}  // namespace neuroshard::compute
