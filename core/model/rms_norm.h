// RMSNorm (Zhang, Sennrich 2019): y = x · inverse ∘ gain, inverse = 1/sqrt(mean(x²) + ε) per row.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/model/block_context.h"
#include "core/model/slot_state.h"
#include "core/model/weight_gradients.h"

namespace neuroshard::model {

// The gradient of the residual stream: summed in fp32, and rounded once for the products that read it.
struct ResidualGradient {
  at::Tensor sum;      // [N,H] fp32
  at::Tensor rounded;  // [N,H] activations; the same tensor in fp32
};

// Returns y [N,H] and the inverse [N] for later.
at::Tensor rms_norm(const BlockContext& context, const Weight& gain, const at::Tensor& x,
                    at::Tensor& inverse);
// y once more, from the kept inverse.
at::Tensor rms_norm_again(const BlockContext& context, const Weight& gain, const at::Tensor& x,
                          const at::Tensor& inverse);
// Adds to the residual stream's gradient, of which it makes a new rounded copy, and to the gain's gradient. Additions
// that `gradients` keeps may read the old rounded copy, so it stays as it is.
void rms_norm_backward(const BlockContext& context, const Weight& gain, const at::Tensor& x,
                       const at::Tensor& inverse, const at::Tensor& gradient_y, ResidualGradient& gradient_x,
                       WeightGradients& gradients);

}  // namespace neuroshard::model
