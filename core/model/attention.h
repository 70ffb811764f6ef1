// Grouped-query causal attention (Ainslie et al. 2023): per sequence and query head h with kv head h /
// (heads/kv_heads)
//   S = Q·Kᵀ / sqrt(D),  P = softmax over the keys up to the query's own position,  O = P·V
// computed in blocks of queries, so that neither S nor P exists for a whole sequence. Only log Σ exp is kept;
// the backward pass makes P again from it (as Dao et al. 2022):
//   dV = Pᵀ·dO,  dP = dO·Vᵀ,  dS = P ∘ (dP − Σ_D O∘dO) / sqrt(D),  dQ = dS·K,  dK = dSᵀ·Q
//
// Legend: B sequences, T queries, D head_dim. Rows are positions; a row of q holds all query heads side by
// side.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/compute/model_shape.h"
#include "core/model/kernels.h"

namespace neuroshard::model {

struct AttentionShape {
  std::int64_t batch = 0;    // B
  std::int64_t queries = 0;  // T, per sequence
  std::int64_t past = 0;     // keys before the first query (KV cache); B must be 1 unless it is 0
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t dim = 0;  // D

  std::int64_t keys() const { return past + queries; }
};

// Rows of q, k and v in memory and their strides, in activations. Sequence b starts at row b·T.
struct AttentionInput {
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  std::int64_t q_stride = 0;
  std::int64_t kv_stride = 0;
};

// output [B·T, heads·D]; log_sum [B, heads, T]. Throws OutOfMemory.
void attention_forward(const Kernels& kernels, const AttentionShape& shape, const AttentionInput& input,
                       void* output, float* log_sum);

// Gradients lie as q, k and v do, with the same strides, and are overwritten. past must be 0. Throws
// OutOfMemory.
struct AttentionGradient {
  void* q = nullptr;
  void* k = nullptr;
  void* v = nullptr;
};
void attention_backward(const Kernels& kernels, const AttentionShape& shape, const AttentionInput& input,
                        const void* output, const float* log_sum, const void* gradient_output,
                        const AttentionGradient& gradient);

}  // namespace neuroshard::model
