// RMSNorm (Zhang, Sennrich 2019): y = x · inverse ∘ gain, inverse = 1/sqrt(mean(x²) + ε) per row.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/model/block_context.h"
#include "core/model/slot_state.h"

namespace neuroshard::model {

// Returns y [N,H] and the inverse [N] for later.
at::Tensor rms_norm(const BlockContext& context, const Weight& gain, const at::Tensor& x,
                    at::Tensor& inverse);
// y once more, from the kept inverse.
at::Tensor rms_norm_again(const BlockContext& context, const Weight& gain, const at::Tensor& x,
                          const at::Tensor& inverse);
// Adds to gradient_x and to the gain's gradient.
void rms_norm_backward(const BlockContext& context, const Weight& gain, const at::Tensor& x,
                       const at::Tensor& inverse, const at::Tensor& gradient_y, at::Tensor& gradient_x);

}  // namespace neuroshard::model
