#include "core/compute/memory_estimate.h"

#include <algorithm>

#include "core/compute/slot.h"

namespace neuroshard::compute {
namespace {

constexpr std::uint64_t float_bytes = sizeof(float);
// As in core/model/head.cpp and attention.cpp.
constexpr std::uint64_t logits_chunk_bytes = 8u << 20;
constexpr std::uint64_t least_logits_rows = 32;
constexpr std::uint64_t attention_block_queries = 64;

// Floats that one layer keeps per token for its backward pass (core/model/block.h).
std::uint64_t kept_per_token(const ModelShape& shape) {
  const std::uint64_t hidden = shape.hidden;
  const std::uint64_t query = std::uint64_t{shape.heads} * shape.head_dim;
  const std::uint64_t key = std::uint64_t{shape.kv_heads} * shape.head_dim;
  const std::uint64_t choices = shape.experts_per_token;
  const std::uint64_t router = shape.experts > 1 ? shape.experts + 1 + 5 * choices : 0;
  const std::uint64_t attention = hidden + 2 * query + 2 * key + shape.heads + 2;
  return attention + hidden + router + 2 * choices * shape.ffn;
}

// Floats per token that live only while one layer runs backward: the mixture's are the most.
std::uint64_t scratch_per_token(const ModelShape& shape) {
  const std::uint64_t choices = shape.experts_per_token;
  const std::uint64_t sorted = shape.experts > 1 ? 3 * choices * shape.hidden : 0;
  return 3 * std::uint64_t{shape.hidden} + sorted + choices * shape.ffn;
}

}  // namespace

MemoryEstimate estimate_memory(const ModelShape& shape, bool trainable) {
  MemoryEstimate estimate;
  estimate.parameters = model_parameter_count(shape) * float_bytes;
  if (trainable) {
    estimate.gradients = estimate.parameters;
    estimate.moments = 2 * estimate.parameters;
  }
  return estimate;
}

std::uint64_t estimate_activation_bytes_per_sample(const ModelShape& shape, std::uint32_t sequence) {
  const std::uint64_t ends =
      std::uint64_t{shape.hidden} + 4;  // the head's input, its statistics, tokens and targets
  return float_bytes * sequence * (shape.layers * kept_per_token(shape) + ends + scratch_per_token(shape));
}

std::uint64_t estimate_workspace_bytes(const ModelShape& shape, std::uint32_t sequence,
                                       std::uint32_t threads) {
  const std::uint64_t logits = std::max(logits_chunk_bytes, least_logits_rows * shape.vocab * float_bytes);
  const std::uint64_t attention =
      2 * attention_block_queries * sequence * float_bytes * std::max(threads, 1u);
  return logits + attention;
}

std::uint64_t estimate_session_bytes(const ModelShape& shape, std::uint32_t capacity) {
  return 2 * float_bytes * shape.layers * std::uint64_t{capacity} * shape.kv_heads * shape.head_dim;
}

}  // namespace neuroshard::compute
