// One decoder layer, pre-norm:
//   a = x + attention(rms_norm(x))·Oᵀ        y = a + mixture(rms_norm(a))
// RMSNorm (Zhang, Sennrich 2019): rms_norm(x) = x / sqrt(mean(x²) + ε) ∘ gain. Keys and queries carry RoPE.
//
// Legend: N tokens, H hidden, Q = heads·head_dim, K = kv_heads·head_dim.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/compute/stage.h"
#include "core/model/attention.h"
#include "core/model/block_context.h"
#include "core/model/experts.h"
#include "core/model/kernels.h"
#include "core/model/kv_cache.h"
#include "core/model/rms_norm.h"
#include "core/model/weight_gradients.h"

namespace neuroshard::model {

struct BlockWeights {
  Weight attention_norm;  // [H]
  Weight qkv;             // [Q + 2K, H]
  Weight out;             // [H, Q]
  Weight mixture_norm;    // [H]
  MixtureWeights mixture;
};

// Kept between forward and backward.
struct BlockState {
  at::Tensor x;                  // [N,H]
  at::Tensor attention_inverse;  // [N]
  at::Tensor qkv;                // [N,Q+2K] activations, after RoPE
  at::Tensor attended;           // [N,Q] activations
  at::Tensor log_sum;            // [B,heads,T]
  at::Tensor a;                  // [N,H]
  at::Tensor mixture_inverse;    // [N]
  MixtureState mixture;
};

struct BlockRun {
  std::int64_t batch = 0;     // B
  std::int64_t sequence = 0;  // T
  float capacity_factor = 0;
  RemoteExperts remote;
};

// Returns y [N,H]. Throws OutOfMemory, ProviderFailure.
at::Tensor block_forward(const BlockContext& context, const BlockWeights& weights, const BlockRun& run,
                         const at::Tensor& x, BlockState& state);
// Rows of x: the next positions of one session.
struct SessionRows {
  std::int64_t first = 0;
  std::int64_t count = 0;
  KvCache* cache = nullptr;
};
// The same for the next positions of several sessions, whose keys and values of `layer` join the caches; the lengths
// of the caches stay. The rows of one product are all sessions' rows.
at::Tensor block_extend(const BlockContext& context, const BlockWeights& weights, const BlockRun& run,
                        const at::Tensor& x, const std::vector<SessionRows>& sessions, std::size_t layer);
// gradient: of y on entry, of x on return. Adds to the gradients of the weights. Destroys `state`, apart from what
// `gradients` keeps of it.
void block_backward(const BlockContext& context, const BlockWeights& weights, const BlockRun& run,
                    BlockState& state, ResidualGradient& gradient, WeightGradients& gradients);

}  // namespace neuroshard::model
