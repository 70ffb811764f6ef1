// The end of the model: final RMSNorm, logits = x·Wᵀ, next-token cross-entropy −log softmax(logits)[target].
// Logits are made in chunks of rows and not kept: the backward pass makes them again.
//
// Legend: N tokens, H hidden, V vocabulary.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/model/block.h"
#include "core/model/rms_norm.h"
#include "core/model/weight_gradients.h"

namespace neuroshard::model {

struct HeadWeights {
  Weight norm;    // [H]
  Weight logits;  // [V,H]
};

struct HeadState {
  at::Tensor x;        // [N,H]
  at::Tensor inverse;  // [N]
  at::Tensor target;   // [N] int32, −1 = no loss
  at::Tensor log_sum;  // [N]
};

// Sum of the losses, in nats. Throws OutOfMemory.
double head_forward(const BlockContext& context, const HeadWeights& weights, const at::Tensor& x,
                    const at::Tensor& target, HeadState& state);
// Returns the gradient of x; adds to the gradients of the weights. Destroys `state`. Additions that `gradients` keeps
// hold the gradient of all logits, [N,V] activations: to make them once more would take a third longer.
ResidualGradient head_backward(const BlockContext& context, const HeadWeights& weights, HeadState& state,
                               WeightGradients& gradients);
// logits [N,V]
void head_logits(const BlockContext& context, const HeadWeights& weights, const at::Tensor& x, float* logits);
// x after the final norm, [N,H]
void head_hidden(const BlockContext& context, const HeadWeights& weights, const at::Tensor& x, float* hidden);
// How likely given tokens are after the rows of x; see compute::TokenScores.
void head_scores(const BlockContext& context, const HeadWeights& weights, const at::Tensor& x,
                 const compute::TokenScores& scores);

}  // namespace neuroshard::model
