#include "core/model/block.h"

#include <algorithm>

#include "core/model/products.h"
#include "core/model/rms_norm.h"
#include "core/model/tensors.h"

namespace neuroshard::model {
namespace {

AttentionShape attention_shape(const compute::ModelShape& shape, const BlockRun& run, std::int64_t past) {
  return {run.batch, run.sequence, past, shape.heads, shape.kv_heads, shape.head_dim};
}

struct Widths {
  std::int64_t query;  // Q
  std::int64_t key;    // K
  std::int64_t all() const { return query + 2 * key; }
};
Widths widths(const compute::ModelShape& shape) {
  return {std::int64_t{shape.heads} * shape.head_dim, std::int64_t{shape.kv_heads} * shape.head_dim};
}

// Projects the normalised input to queries, keys and values and turns the first two.
at::Tensor project(const BlockContext& context, const BlockWeights& weights, const at::Tensor& normalised,
                   std::int64_t period, std::int64_t past) {
  at::Tensor qkv = make_floats({normalised.size(0), widths(context.shape).all()});
  multiply_transposed(qkv, normalised, weights.qkv.value);
  context.rope->apply(*context.kernels, floats(qkv), qkv.size(0), qkv.size(1),
                      context.shape.heads + context.shape.kv_heads, period, past, 1.0f);
  return qkv;
}

at::Tensor finish(const BlockContext& context, const BlockWeights& weights, const BlockRun& run,
                  const at::Tensor& x, BlockState& state) {
  state.a = make_floats({x.size(0), x.size(1)});
  multiply_transposed_plus(state.a, x, state.attended, weights.out.value);
  const at::Tensor normalised = rms_norm(context, weights.mixture_norm, state.a, state.mixture_inverse);
  at::Tensor y = state.a.clone();
  mixture_forward(*context.kernels, weights.mixture, run.remote, run.capacity_factor, normalised, y,
                  state.mixture);
  return y;
}

AttentionInput attention_input(const at::Tensor& qkv, const Widths& width) {
  const float* q = floats(qkv);
  return {q, q + width.query, q + width.query + width.key, width.all(), width.all()};
}

}  // namespace

at::Tensor block_forward(const BlockContext& context, const BlockWeights& weights, const BlockRun& run,
                         const at::Tensor& x, BlockState& state) {
  const Widths width = widths(context.shape);
  const std::int64_t tokens = x.size(0);
  state.x = x;
  {
    const at::Tensor normalised = rms_norm(context, weights.attention_norm, x, state.attention_inverse);
    state.qkv = project(context, weights, normalised, run.sequence, 0);
  }
  state.attended = make_floats({tokens, width.query});
  state.log_sum = make_floats({tokens, context.shape.heads});
  attention_forward(*context.kernels, attention_shape(context.shape, run, 0),
                    attention_input(state.qkv, width), floats(state.attended), floats(state.log_sum));
  return finish(context, weights, run, x, state);
}

at::Tensor block_extend(const BlockContext& context, const BlockWeights& weights, const BlockRun& run,
                        const at::Tensor& x, const KvLayer& cache, std::int64_t past) {
  const Widths width = widths(context.shape);
  BlockState state;
  const at::Tensor normalised = rms_norm(context, weights.attention_norm, x, state.attention_inverse);
  const at::Tensor qkv = project(context, weights, normalised, x.size(0), past);
  for (std::int64_t row = 0; row < x.size(0); ++row) {
    const float* keys = floats(qkv) + row * width.all() + width.query;
    std::copy_n(keys, width.key, floats(cache.keys) + (past + row) * width.key);
    std::copy_n(keys + width.key, width.key, floats(cache.values) + (past + row) * width.key);
  }
  state.attended = make_floats({x.size(0), width.query});
  const at::Tensor log_sum = make_floats({x.size(0), context.shape.heads});
  const AttentionInput input{floats(qkv), floats(cache.keys), floats(cache.values), width.all(), width.key};
  attention_forward(*context.kernels, attention_shape(context.shape, run, past), input,
                    floats(state.attended), floats(log_sum));
  return finish(context, weights, run, x, state);
}

void block_backward(const BlockContext& context, const BlockWeights& weights, const BlockRun& run,
                    BlockState& state, at::Tensor& gradient) {
  const Widths width = widths(context.shape);
  const std::int64_t tokens = gradient.size(0);
  {
    const at::Tensor normalised =
        rms_norm_again(context, weights.mixture_norm, state.a, state.mixture_inverse);
    at::Tensor upstream = make_floats({tokens, gradient.size(1)});
    mixture_backward(*context.kernels, weights.mixture, run.remote, context.router, normalised, gradient,
                     state.mixture, upstream);
    state.mixture = MixtureState();
    rms_norm_backward(context, weights.mixture_norm, state.a, state.mixture_inverse, upstream, gradient);
    state.a = at::Tensor();
  }
  at::Tensor gradient_qkv = make_floats({tokens, width.all()});
  {
    at::Tensor gradient_attended = make_floats({tokens, width.query});
    multiply(gradient_attended, gradient, weights.out.value);
    at::Tensor out_gradient = weights.out.gradient;
    add_outer(out_gradient, gradient, state.attended);
    float* q = floats(gradient_qkv);
    attention_backward(*context.kernels, attention_shape(context.shape, run, 0),
                       attention_input(state.qkv, width), floats(state.attended), floats(state.log_sum),
                       floats(gradient_attended), {q, q + width.query, q + width.query + width.key});
    context.rope->apply(*context.kernels, q, tokens, width.all(),
                        context.shape.heads + context.shape.kv_heads, run.sequence, 0, -1.0f);
  }
  const at::Tensor normalised =
      rms_norm_again(context, weights.attention_norm, state.x, state.attention_inverse);
  at::Tensor qkv_gradient = weights.qkv.gradient;
  add_outer(qkv_gradient, gradient_qkv, normalised);
  at::Tensor upstream = make_floats({tokens, gradient.size(1)});
  multiply(upstream, gradient_qkv, weights.qkv.value);
  rms_norm_backward(context, weights.attention_norm, state.x, state.attention_inverse, upstream, gradient);
  state = BlockState();
}

}  // namespace neuroshard::model
