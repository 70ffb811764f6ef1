#include "core/compute/memory_estimate.h"

#include <algorithm>

#include "core/compute/slot.h"

namespace neuroshard::compute {
namespace {

constexpr std::uint64_t float_bytes = sizeof(float);
// As in core/model/head.cpp.
constexpr std::uint64_t logits_chunk_bytes = 8u << 20;
constexpr std::uint64_t least_logits_rows = 32;

// As in core/model/packed_weight.h.
constexpr std::uint64_t packed_rows = 32;
constexpr std::uint64_t packed_columns = 64;
constexpr std::uint64_t bf16_bytes = 2;
constexpr std::uint64_t reduction_blocks = 32;  // core/model/kernels.h
constexpr std::uint64_t head_columns = 16;      // heads are padded to it (core/model/attention_shape.h)

std::uint64_t activation_bytes(Precision precision) {
  return precision == Precision::Fp32 ? float_bytes : bf16_bytes;
}

struct Widths {
  explicit Widths(const ModelShape& shape)
      : hidden(shape.hidden),
        query(std::uint64_t{shape.heads} * shape.head_dim),
        key(std::uint64_t{shape.kv_heads} * shape.head_dim),
        chosen(std::uint64_t{shape.experts_per_token} * shape.ffn) {}
  std::uint64_t hidden;
  std::uint64_t query;
  std::uint64_t key;
  std::uint64_t chosen;  // of all experts of a token together
};

// Bytes that one layer keeps per token for its backward pass (core/model/block.h).
std::uint64_t kept_per_token(const ModelShape& shape, Precision precision) {
  const Widths width(shape);
  const std::uint64_t choices = shape.experts_per_token;
  const std::uint64_t router = shape.experts > 1 ? shape.experts + 1 + 5 * choices : 0;
  const std::uint64_t exact = 2 * width.hidden + shape.heads + 2 + router;
  const std::uint64_t activations = 2 * width.query + 2 * width.key + 2 * width.chosen;
  return exact * float_bytes + activations * activation_bytes(precision);
}

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// Bytes per token that live only while a layer's mixture runs backward.
std::uint64_t mixture_scratch_per_token(const ModelShape& shape, Precision precision) {
  const Widths width(shape);
  const std::uint64_t sorted = shape.experts > 1 ? 3 * shape.experts_per_token * width.hidden : 0;
  std::uint64_t bytes =
      2 * width.hidden * float_bytes + (width.hidden + sorted + width.chosen) * activation_bytes(precision);
  if (precision == Precision::Bf16) {
    // The rounded gradient, and the turned operands of the experts' gradients (tile_products.h).
    const std::uint64_t operands = 2 * shape.experts_per_token * width.hidden + 3 * width.chosen;
    bytes += (width.hidden + operands) * bf16_bytes;
  }
  return bytes;
}

// The same for its attention: gradients of queries, keys and values, and of the keys and values of each head
// where several share them (core/model/attention_shape.h).
std::uint64_t attention_scratch_per_token(const ModelShape& shape, Precision precision) {
  const Widths width(shape);
  std::uint64_t bytes = 2 * width.hidden * float_bytes +
                        (width.hidden + 2 * width.query + 2 * width.key) * activation_bytes(precision);
  if (shape.heads != shape.kv_heads)
    bytes += 2 * shape.heads * round_up(shape.head_dim, head_columns) * float_bytes;
  return bytes;
}

std::uint64_t scratch_per_token(const ModelShape& shape, Precision precision) {
  return std::max(mixture_scratch_per_token(shape, precision), attention_scratch_per_token(shape, precision));
}

// Scratch of one thread in the attention's backward pass (core/model/attention_shape.h), the larger of the
// two.
std::uint64_t attention_scratch_per_thread(const ModelShape& shape, std::uint32_t sequence) {
  const std::uint64_t columns = round_up(shape.head_dim, head_columns);
  return (4 * round_up(sequence, 2) * columns + 320 * columns + std::uint64_t{64} * 194) * float_bytes;
}

// Both packed copies of a weight, or the one that a forward pass reads.
std::uint64_t packed_bytes(std::uint64_t rows, std::uint64_t columns, bool trainable) {
  const std::uint64_t forward = round_up(columns, packed_rows) * round_up(rows, packed_columns);
  const std::uint64_t backward = round_up(rows, packed_rows) * round_up(columns, packed_columns);
  return bf16_bytes * (forward + (trainable ? backward : 0));
}

std::uint64_t packed_layer_bytes(const ModelShape& shape, bool trainable) {
  const Widths width(shape);
  std::uint64_t layer = packed_bytes(width.query + 2 * width.key, width.hidden, trainable) +
                        packed_bytes(width.hidden, width.query, trainable);
  if (shape.experts > 1) layer += packed_bytes(shape.experts, width.hidden, trainable);
  return layer;
}

std::uint64_t packed_expert_bytes(const ModelShape& shape, bool trainable) {
  return packed_bytes(2 * std::uint64_t{shape.ffn}, shape.hidden, trainable) +
         packed_bytes(shape.hidden, shape.ffn, trainable);
}

std::uint64_t held_experts(const StageSpec& spec) {
  const std::uint64_t all = std::uint64_t{spec.layer_count} * spec.shape.experts;
  if (spec.expert_held == nullptr) return all;
  std::uint64_t held = 0;
  for (std::uint64_t i = 0; i < all; ++i) held += spec.expert_held[i] != 0 ? 1 : 0;
  return held;
}

// Bytes per token that live as long as a micro-batch's activations: the layers', and of the head its input, its
// statistics, tokens and targets.
std::uint64_t stage_kept_per_token(const StageSpec& spec, Precision precision) {
  std::uint64_t bytes = spec.layer_count * kept_per_token(spec.shape, precision);
  if (spec.head) bytes += (std::uint64_t{spec.shape.hidden} + 4) * float_bytes;
  return bytes;
}

// Bytes per token beside those.
std::uint64_t stage_passing_per_token(const StageSpec& spec, Precision precision) {
  const std::uint64_t boundary = 2 * std::uint64_t{spec.shape.hidden} * float_bytes;
  std::uint64_t bytes = spec.layer_count > 0 ? scratch_per_token(spec.shape, precision) : 0;
  if (!spec.embed) bytes += boundary;
  if (!spec.head) bytes += boundary;
  return bytes;
}

StageSpec whole_model(const ModelShape& shape, bool trainable) {
  StageSpec spec;
  spec.shape = shape;
  spec.layer_count = shape.layers;
  spec.embed = spec.head = true;
  spec.trainable = trainable;
  return spec;
}

}  // namespace

MemoryEstimate estimate_memory(const ModelShape& shape, Precision precision, bool trainable) {
  return estimate_memory(whole_model(shape, trainable), precision);
}

MemoryEstimate estimate_memory(const StageSpec& spec, Precision precision) {
  const ModelShape& shape = spec.shape;
  const std::uint64_t experts = held_experts(spec);
  std::uint64_t count =
      spec.layer_count * slot_parameter_count(shape, {SlotKind::Layer, spec.first_layer, 0}) +
      experts * slot_parameter_count(shape, {SlotKind::Expert, spec.first_layer, 0});
  if (spec.embed) count += slot_parameter_count(shape, {SlotKind::Embed, 0, 0});
  if (spec.head) count += slot_parameter_count(shape, {SlotKind::Head, 0, 0});
  MemoryEstimate estimate;
  estimate.parameters = count * float_bytes;
  if (precision == Precision::Bf16) {
    estimate.packed = spec.layer_count * packed_layer_bytes(shape, spec.trainable) +
                      experts * packed_expert_bytes(shape, spec.trainable);
    if (spec.head) estimate.packed += packed_bytes(shape.vocab, shape.hidden, spec.trainable);
  }
  if (spec.trainable) {
    estimate.gradients = estimate.parameters;
    estimate.moments = 2 * estimate.parameters;
  }
  return estimate;
}

std::uint64_t estimate_activation_bytes_per_sample(const ModelShape& shape, Precision precision,
                                                   std::uint32_t sequence) {
  return estimate_activation_bytes_per_sample(whole_model(shape, true), precision, sequence);
}

std::uint64_t estimate_activation_bytes_per_sample(const StageSpec& spec, Precision precision,
                                                   std::uint32_t sequence) {
  return sequence * (stage_kept_per_token(spec, precision) + stage_passing_per_token(spec, precision));
}

std::uint64_t estimate_deferred_bytes(const StageSpec& spec, Precision precision, std::uint64_t tokens) {
  const ModelShape& shape = spec.shape;
  const Widths width(shape);
  // Both factors of each weight's gradient (core/model/block.cpp, experts.cpp, router.cpp).
  const std::uint64_t attention = 2 * width.hidden + 2 * width.query + 2 * width.key;
  const std::uint64_t experts = 2 * shape.experts_per_token * width.hidden + 3 * width.chosen;
  const std::uint64_t router = shape.experts > 1 ? shape.experts + width.hidden : 0;
  std::uint64_t activations = spec.layer_count * (attention + experts + router);
  if (spec.head) activations += width.hidden + shape.vocab;
  const std::uint64_t exact = spec.embed ? width.hidden + 1 : 0;
  const std::uint64_t norms = 2 * std::uint64_t{spec.layer_count} + (spec.head ? 1 : 0);
  return tokens * (activations * activation_bytes(precision) + exact * float_bytes) +
         norms * reduction_blocks * width.hidden * float_bytes;
}

PipelineEstimate estimate_pipeline_bytes(const StageSpec& spec, Precision precision, std::uint64_t tokens) {
  const std::uint64_t ids = spec.embed ? sizeof(std::int32_t) : 0;
  return {tokens * (stage_kept_per_token(spec, precision) + ids),
          estimate_deferred_bytes(spec, precision, tokens),
          tokens * stage_passing_per_token(spec, precision)};
}

std::uint64_t estimate_workspace_bytes(const ModelShape& shape, Precision precision, std::uint32_t sequence,
                                       std::uint32_t threads) {
  return estimate_workspace_bytes(whole_model(shape, true), precision, sequence, threads);
}

std::uint64_t estimate_workspace_bytes(const StageSpec& spec, Precision precision, std::uint32_t sequence,
                                       std::uint32_t threads) {
  std::uint64_t bytes = 0;
  if (spec.head) {
    bytes = std::max(logits_chunk_bytes, least_logits_rows * spec.shape.vocab * float_bytes);
    // Their gradient, and the turned operands of the head's.
    if (precision == Precision::Bf16) bytes *= 2;
  }
  if (spec.layer_count > 0)
    bytes += attention_scratch_per_thread(spec.shape, sequence) * std::max(threads, 1u);
  return bytes;
}

std::uint64_t estimate_session_bytes(const ModelShape& shape, Precision precision, std::uint32_t capacity) {
  return 2 * activation_bytes(precision) * shape.layers * std::uint64_t{capacity} * shape.kv_heads *
         shape.head_dim;
}

}  // namespace neuroshard::compute
