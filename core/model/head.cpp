#include "core/model/head.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <new>

#include "core/compute/sampling.h"
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

void score_row(const compute::TokenScores& scores, std::int64_t row, Span<const float> logits) {
  const compute::Logprobs found =
      compute::log_probabilities(logits, scores.targets[row], scores.top, scores.vocabulary);
  scores.logprobs[row] = found.chosen;
  for (std::size_t i = 0; i < scores.top; ++i) {
    const std::size_t at = static_cast<std::size_t>(row) * scores.top + i;
    const bool exists = i < found.top.size();
    scores.top_tokens[at] = exists ? found.top[i].token : -1;
    scores.top_logprobs[at] = exists ? found.top[i].logprob : -std::numeric_limits<double>::infinity();
  }
}

// Rows [first, first + rows) of the scores, from their logits.
void score_rows(const compute::TokenScores& scores, std::int64_t first, std::int64_t rows,
                const float* logits, std::int64_t vocab) {
  std::atomic<bool> failed{false};  // an exception must not leave the parallel loop
#pragma omp parallel for schedule(dynamic)
  for (std::int64_t row = 0; row < rows; ++row) {
    if (scores.targets[first + row] < 0) continue;
    try {
      score_row(scores, first + row, {logits + row * vocab, static_cast<std::size_t>(vocab)});
    } catch (const std::bad_alloc&) {
      failed = true;
    }
  }
  if (failed) throw std::bad_alloc();
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

ResidualGradient head_backward(const BlockContext& context, const HeadWeights& weights, HeadState& state,
                               WeightGradients& gradients) {
  const std::int64_t tokens = state.x.size(0);
  const std::int64_t vocab = weights.logits.value.size(0);
  const at::Tensor normalised = rms_norm_again(context, weights.norm, state.x, state.inverse);
  at::Tensor upstream = make_floats({tokens, state.x.size(1)});
  const std::int64_t step = std::min(tokens, chunk_rows(vocab));
  {
    const bool same = context.kernels().element == Element::Float;
    const at::Tensor logit_gradients =
        make_activations(context.kernels(), {gradients.later() ? tokens : step, vocab});
    const at::Tensor logits = same ? logit_gradients : make_floats({step, vocab});
    for (std::int64_t first = 0; first < tokens; first += step) {
      const std::int64_t rows = std::min(step, tokens - first);
      const at::Tensor input = rows_of(normalised, first, rows);
      const at::Tensor gradient = rows_of(logit_gradients, gradients.later() ? first : 0, rows);
      at::Tensor chunk = same ? gradient : rows_of(logits, 0, rows);
      at::Tensor output = rows_of(upstream, first, rows);
      multiply_transposed(context.backend, chunk, input, weights.logits);
      context.kernels().cross_entropy_backward(floats(chunk), ints(state.target) + first,
                                               floats(state.log_sum) + first, rows, vocab, raw(gradient));
      add_outer(context.backend, weights.logits, gradient, input, gradients);
      multiply(context.backend, output, gradient, weights.logits);
    }
  }
  ResidualGradient gradient{make_zeros({tokens, state.x.size(1)}), at::Tensor()};
  rms_norm_backward(context, weights.norm, state.x, state.inverse, upstream, gradient, gradients);
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

void head_hidden(const BlockContext& context, const HeadWeights& weights, const at::Tensor& x,
                 float* hidden) {
  at::Tensor inverse;
  const at::Tensor normalised = rms_norm(context, weights.norm, x, inverse);
  context.kernels().widen(raw(normalised), normalised.numel(), hidden);
}

void head_scores(const BlockContext& context, const HeadWeights& weights, const at::Tensor& x,
                 const compute::TokenScores& scores) {
  at::Tensor inverse;
  const at::Tensor normalised = rms_norm(context, weights.norm, x, inverse);
  const std::int64_t tokens = x.size(0);
  const std::int64_t vocab = weights.logits.value.size(0);
  const std::int64_t step = std::min(tokens, chunk_rows(vocab));
  const at::Tensor logits = make_floats({step, vocab});
  for (std::int64_t first = 0; first < tokens; first += step) {
    const std::int64_t rows = std::min(step, tokens - first);
    const std::int32_t* targets = scores.targets + first;
    if (std::all_of(targets, targets + rows, [](std::int32_t target) { return target < 0; })) continue;
    at::Tensor chunk = rows_of(logits, 0, rows);
    multiply_transposed(context.backend, chunk, rows_of(normalised, first, rows), weights.logits);
    score_rows(scores, first, rows, floats(chunk), vocab);
  }
}

}  // namespace neuroshard::model
