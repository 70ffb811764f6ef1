#include "core/model/head.h"

#include <algorithm>

#include "core/model/products.h"
#include "core/model/tensors.h"

namespace neuroshard::model {
namespace {

// Logits that exist at one time: small enough to matter little beside the layers, large enough for the
// product.
constexpr std::int64_t chunk_bytes = 8 << 20;
constexpr std::int64_t least_chunk_rows = 32;

std::int64_t chunk_rows(std::int64_t vocab) {
  return std::max<std::int64_t>(least_chunk_rows,
                                chunk_bytes / static_cast<std::int64_t>(sizeof(float)) / vocab);
}

}  // namespace

double head_forward(const BlockContext& context, const HeadWeights& weights, const at::Tensor& x,
                    const at::Tensor& target, HeadState& state) {
  const std::int64_t tokens = x.size(0);
  const std::int64_t vocab = weights.logits.value.size(0);
  state.x = x;
  state.target = target;
  state.log_sum = make_floats({tokens});
  const at::Tensor normalised = rms_norm(context, weights.norm, x, state.inverse);
  const at::Tensor loss = make_floats({tokens});
  const std::int64_t step = std::min(tokens, chunk_rows(vocab));
  const at::Tensor logits = make_floats({step, vocab});
  for (std::int64_t first = 0; first < tokens; first += step) {
    const std::int64_t rows = std::min(step, tokens - first);
    at::Tensor chunk = rows_of(logits, 0, rows);
    multiply_transposed(context.backend, chunk, rows_of(normalised, first, rows), weights.logits);
    context.kernels().cross_entropy_forward(floats(chunk), ints(target) + first, rows, vocab,
                                            floats(state.log_sum) + first, floats(loss) + first);
  }
  double sum = 0;
  for (std::int64_t n = 0; n < tokens; ++n) sum += floats(loss)[n];
  return sum;
}

ResidualGradient head_backward(const BlockContext& context, const HeadWeights& weights, HeadState& state) {
  const std::int64_t tokens = state.x.size(0);
  const std::int64_t vocab = weights.logits.value.size(0);
  const at::Tensor normalised = rms_norm_again(context, weights.norm, state.x, state.inverse);
  at::Tensor upstream = make_floats({tokens, state.x.size(1)});
  const std::int64_t step = std::min(tokens, chunk_rows(vocab));
  {
    const bool same = context.kernels().element == Element::Float;
    const at::Tensor logits = make_floats({step, vocab});
    const at::Tensor gradients = same ? logits : make_activations(context.kernels(), {step, vocab});
    for (std::int64_t first = 0; first < tokens; first += step) {
      const std::int64_t rows = std::min(step, tokens - first);
      const at::Tensor input = rows_of(normalised, first, rows);
      at::Tensor chunk = rows_of(logits, 0, rows);
      at::Tensor output = rows_of(upstream, first, rows);
      const at::Tensor gradient = rows_of(gradients, 0, rows);
      multiply_transposed(context.backend, chunk, input, weights.logits);
      context.kernels().cross_entropy_backward(floats(chunk), ints(state.target) + first,
                                               floats(state.log_sum) + first, rows, vocab, raw(gradient));
      add_outer(context.backend, weights.logits, gradient, input);
      multiply(context.backend, output, gradient, weights.logits);
    }
  }
  ResidualGradient gradient{make_zeros({tokens, state.x.size(1)}), at::Tensor()};
  rms_norm_backward(context, weights.norm, state.x, state.inverse, upstream, gradient);
  state = HeadState();
  return gradient;
}

void head_logits(const BlockContext& context, const HeadWeights& weights, const at::Tensor& x,
                 float* logits) {
  at::Tensor inverse;
  const at::Tensor normalised = rms_norm(context, weights.norm, x, inverse);
  at::Tensor result = wrap_floats(logits, {x.size(0), weights.logits.value.size(0)});
  multiply_transposed(context.backend, result, normalised, weights.logits);
}

}  // namespace neuroshard::model
