// Grouped-query causal attention (Ainslie et al. 2023): per sequence and query head h with kv head h /
// (heads/kv_heads)
//   S = Q·Kᵀ / sqrt(D),  P = softmax over the keys up to the query's own position,  O = P·V
// computed in blocks of queries and keys, so that neither S nor P exists for a whole sequence. Only log Σ exp
// is kept; the backward pass makes P again from it (as Dao et al. 2022):
//   dV = Pᵀ·dO,  dP = dO·Vᵀ,  dS = P ∘ (dP − Σ_D O∘dO) / sqrt(D),  dQ = dS·K,  dK = dSᵀ·Q
// The same bits whatever the number of threads. Activations are widened to fp32 and results rounded once.
//
// Legend: B sequences, T queries, D head_dim. Rows are positions; a row of q holds all query heads side by
// side.
#pragma once

#include <vector>

#include "core/model/attention_shape.h"
#include "core/model/kernels.h"

namespace neuroshard::model {

// output [B·T, heads·D]; log_sum [B, heads, T]. Throws OutOfMemory.
void attention_forward(const Kernels& kernels, const AttentionShape& shape, const AttentionInput& input,
                       void* output, float* log_sum);

// Sequences with keys and values of their own, side by side: the same bits as one after the other. B must be 1 each.
struct AttentionTask {
  AttentionShape shape;
  AttentionInput input;
  void* output = nullptr;
  float* log_sum = nullptr;
};
void attention_forward(const Kernels& kernels, const std::vector<AttentionTask>& tasks);

// past must be 0. Throws OutOfMemory.
void attention_backward(const Kernels& kernels, const AttentionShape& shape, const AttentionInput& input,
                        const void* output, const float* log_sum, const void* gradient_output,
                        const AttentionGradient& gradient);

}  // namespace neuroshard::model
