#include "core/model/rms_norm.h"

#include "core/model/tensors.h"

namespace neuroshard::model {

at::Tensor rms_norm(const BlockContext& context, const Weight& gain, const at::Tensor& x,
                    at::Tensor& inverse) {
  at::Tensor y = make_activations(context.kernels(), {x.size(0), x.size(1)});
  inverse = make_floats({x.size(0)});
  context.kernels().rms_norm_forward(floats(x), floats(gain.value), context.shape.rms_epsilon, x.size(0),
                                     x.size(1), raw(y), floats(inverse));
  return y;
}

at::Tensor rms_norm_again(const BlockContext& context, const Weight& gain, const at::Tensor& x,
                          const at::Tensor& inverse) {
  at::Tensor y = make_activations(context.kernels(), {x.size(0), x.size(1)});
  context.kernels().rms_norm_apply(floats(x), floats(gain.value), floats(inverse), x.size(0), x.size(1),
                                   raw(y));
  return y;
}

void rms_norm_backward(const BlockContext& context, const Weight& gain, const at::Tensor& x,
                       const at::Tensor& inverse, const at::Tensor& gradient_y, ResidualGradient& gradient_x,
                       WeightGradients& gradients) {
  const Kernels& kernels = context.kernels();
  const bool round = kernels.element != Element::Float;
  if (!round && gradients.later()) gradient_x.sum = gradient_x.sum.clone();
  gradient_x.rounded = round ? make_activations(kernels, gradient_x.sum.sizes()) : gradient_x.sum;
  const at::Tensor gain_blocks = make_floats({reduction_blocks, x.size(1)});
  kernels.rms_norm_backward(floats(gradient_y), floats(x), floats(gain.value), floats(inverse), x.size(0),
                            x.size(1), floats(gradient_x.sum), floats(gain_blocks),
                            round ? raw(gradient_x.rounded) : nullptr);
  gradients.add([&kernels, gain_blocks, sum = gain.gradient] {
    kernels.add_blocks(floats(gain_blocks), sum.numel(), floats(sum));
  });
}

}  // namespace neuroshard::model
