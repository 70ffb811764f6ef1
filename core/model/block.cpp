#include "core/model/block.h"

#include <cstring>

#include "core/model/products.h"
#include "core/model/tensors.h"

namespace neuroshard::model {
namespace {

AttentionShape attention_shape(const compute::ModelShape& shape, const BlockRun& run) {
  return {run.batch, run.sequence, 0, shape.heads, shape.kv_heads, shape.head_dim};
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
                   std::int64_t period) {
  at::Tensor qkv = make_activations(context.kernels(), {normalised.size(0), widths(context.shape).all()});
  multiply_transposed(context.backend, qkv, normalised, weights.qkv);
  context.rope->apply(context.kernels(), raw(qkv), qkv.size(0), qkv.size(1),
                      context.shape.heads + context.shape.kv_heads, period, 0, 1.0f);
  return qkv;
}

at::Tensor finish(const BlockContext& context, const BlockWeights& weights, const BlockRun& run,
                  const at::Tensor& x, BlockState& state) {
  state.a = x.clone();
  add_transposed(context.backend, state.a, state.attended, weights.out);
  const at::Tensor normalised = rms_norm(context, weights.mixture_norm, state.a, state.mixture_inverse);
  at::Tensor y = state.a.clone();
  mixture_forward(context.backend, weights.mixture, run.remote, run.capacity_factor, normalised, y,
                  state.mixture);
  return y;
}

AttentionInput attention_input(const Kernels& kernels, const at::Tensor& qkv, const Widths& width) {
  const char* q = static_cast<const char*>(raw(qkv));
  const std::int64_t size = element_bytes(kernels);
  return {q, q + width.query * size, q + (width.query + width.key) * size, width.all(), width.all()};
}

// Appends the keys and values of qkv's rows to a cache.
void keep_keys(const Kernels& kernels, const at::Tensor& qkv, const Widths& width, const KvLayer& cache,
               std::int64_t past) {
  const std::int64_t size = element_bytes(kernels);
  const auto key_bytes = static_cast<std::size_t>(width.key * size);
  for (std::int64_t row = 0; row < qkv.size(0); ++row) {
    const char* keys = static_cast<const char*>(raw(qkv)) + (row * width.all() + width.query) * size;
    const std::int64_t at = (past + row) * width.key * size;
    std::memcpy(static_cast<char*>(raw(cache.keys)) + at, keys, key_bytes);
    std::memcpy(static_cast<char*>(raw(cache.values)) + at, keys + key_bytes, key_bytes);
  }
}

}  // namespace

at::Tensor block_forward(const BlockContext& context, const BlockWeights& weights, const BlockRun& run,
                         const at::Tensor& x, BlockState& state) {
  const Widths width = widths(context.shape);
  const std::int64_t tokens = x.size(0);
  state.x = x;
  {
    const at::Tensor normalised = rms_norm(context, weights.attention_norm, x, state.attention_inverse);
    state.qkv = project(context, weights, normalised, run.sequence);
  }
  state.attended = make_activations(context.kernels(), {tokens, width.query});
  state.log_sum = make_floats({tokens, context.shape.heads});
  attention_forward(context.kernels(), attention_shape(context.shape, run),
                    attention_input(context.kernels(), state.qkv, width), raw(state.attended),
                    floats(state.log_sum));
  return finish(context, weights, run, x, state);
}

at::Tensor block_extend(const BlockContext& context, const BlockWeights& weights, const BlockRun& run,
                        const at::Tensor& x, const std::vector<SessionRows>& sessions, std::size_t layer) {
  const Kernels& kernels = context.kernels();
  const Widths width = widths(context.shape);
  BlockState state;
  const at::Tensor normalised = rms_norm(context, weights.attention_norm, x, state.attention_inverse);
  const at::Tensor qkv = make_activations(kernels, {x.size(0), width.all()});
  at::Tensor product = qkv;
  multiply_transposed(context.backend, product, normalised, weights.qkv);
  state.attended = make_activations(kernels, {x.size(0), width.query});
  const at::Tensor log_sum = make_floats({x.size(0), context.shape.heads});
  std::vector<AttentionTask> tasks;
  tasks.reserve(sessions.size());
  for (const SessionRows& session : sessions) {
    const at::Tensor rows = rows_of(qkv, session.first, session.count);
    const std::int64_t past = session.cache->length;
    context.rope->apply(kernels, raw(rows), session.count, width.all(),
                        context.shape.heads + context.shape.kv_heads, session.count, past, 1.0f);
    const KvLayer& cache = session.cache->layers[layer];
    keep_keys(kernels, rows, width, cache, past);
    tasks.push_back(
        {{1, session.count, past, context.shape.heads, context.shape.kv_heads, context.shape.head_dim},
         {raw(rows), raw(cache.keys), raw(cache.values), width.all(), width.key},
         raw(rows_of(state.attended, session.first, session.count)),
         floats(log_sum) + session.first * context.shape.heads});
  }
  attention_forward(kernels, tasks);
  return finish(context, weights, run, x, state);
}

void block_backward(const BlockContext& context, const BlockWeights& weights, const BlockRun& run,
                    BlockState& state, ResidualGradient& gradient, WeightGradients& gradients) {
  const Kernels& kernels = context.kernels();
  const Widths width = widths(context.shape);
  const std::int64_t tokens = gradient.sum.size(0);
  at::Tensor upstream = make_floats(gradient.sum.sizes());
  {
    const at::Tensor normalised =
        rms_norm_again(context, weights.mixture_norm, state.a, state.mixture_inverse);
    mixture_backward(context.backend, weights.mixture, run.remote, context.router, normalised,
                     gradient.rounded, state.mixture, upstream, gradients);
    state.mixture = MixtureState();
    rms_norm_backward(context, weights.mixture_norm, state.a, state.mixture_inverse, upstream, gradient,
                      gradients);
    state.a = at::Tensor();
  }
  at::Tensor gradient_qkv = make_activations(kernels, {tokens, width.all()});
  {
    at::Tensor gradient_attended = make_activations(kernels, {tokens, width.query});
    multiply(context.backend, gradient_attended, gradient.rounded, weights.out);
    add_outer(context.backend, weights.out, gradient.rounded, state.attended, gradients);
    char* q = static_cast<char*>(raw(gradient_qkv));
    const std::int64_t size = element_bytes(kernels);
    attention_backward(kernels, attention_shape(context.shape, run),
                       attention_input(kernels, state.qkv, width), raw(state.attended), floats(state.log_sum),
                       raw(gradient_attended),
                       {q, q + width.query * size, q + (width.query + width.key) * size});
    context.rope->apply(kernels, q, tokens, width.all(), context.shape.heads + context.shape.kv_heads,
                        run.sequence, 0, -1.0f);
  }
  const at::Tensor normalised =
      rms_norm_again(context, weights.attention_norm, state.x, state.attention_inverse);
  add_outer(context.backend, weights.qkv, gradient_qkv, normalised, gradients);
  multiply(context.backend, upstream, gradient_qkv, weights.qkv);
  rms_norm_backward(context, weights.attention_norm, state.x, state.attention_inverse, upstream, gradient,
                    gradients);
  state = BlockState();
}

}  // namespace neuroshard::model
