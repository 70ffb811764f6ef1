#include "core/model/attention.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <new>

#include "core/model/products.h"
#include "core/model/tensors.h"

namespace neuroshard::model {
namespace {

// Queries per block: large enough for the products to run at speed, small enough that the masked half of a
// block's scores costs little and that they stay in the cache.
constexpr std::int64_t block_queries = 64;

struct Block {
  std::int64_t first = 0;  // query
  std::int64_t rows = 0;
  std::int64_t columns = 0;  // keys that the last row sees
  std::int64_t visible = 0;  // keys that the first row sees
};

Block block_of(const AttentionShape& shape, std::int64_t index) {
  Block block;
  block.first = index * block_queries;
  block.rows = std::min(block_queries, shape.queries - block.first);
  block.columns = shape.past + block.first + block.rows;
  block.visible = shape.past + block.first + 1;
  return block;
}

// What one (sequence, head) sees of the arrays.
struct FloatInput {
  const float* q;
  const float* k;
  const float* v;
  std::int64_t q_stride;
  std::int64_t kv_stride;
};
struct FloatGradient {
  float* q;
  float* k;
  float* v;
};

struct HeadView {
  const float* q;
  const float* k;
  const float* v;
  std::int64_t out;      // offset into output rows
  std::int64_t log_sum;  // offset into log_sum
};

HeadView view_of(const AttentionShape& shape, const FloatInput& input, std::int64_t sequence,
                 std::int64_t head) {
  const std::int64_t group = shape.heads / shape.kv_heads;
  const std::int64_t query_row = sequence * shape.queries;
  const std::int64_t key_row = sequence * shape.keys();
  const std::int64_t kv = key_row * input.kv_stride + head / group * shape.dim;
  return {input.q + query_row * input.q_stride + head * shape.dim, input.k + kv, input.v + kv,
          query_row * shape.heads * shape.dim + head * shape.dim,
          (sequence * shape.heads + head) * shape.queries};
}

bool forward_block(const Kernels& kernels, const AttentionShape& shape, const FloatInput& input,
                   const HeadView& view, const Block& block, float* scores, float* output, float* log_sum) {
  const std::int64_t width = shape.heads * shape.dim;
  const float scale = 1.0f / std::sqrt(static_cast<float>(shape.dim));
  const Operand q{view.q + block.first * input.q_stride, input.q_stride, false};
  if (!gemm(block.rows, block.columns, shape.dim, 1, q, {view.k, input.kv_stride, true}, 0, scores,
            block.columns)) {
    return false;
  }
  kernels.causal_softmax(scores, block.rows, block.columns, block.visible, scale,
                         log_sum + view.log_sum + block.first);
  return gemm(block.rows, shape.dim, block.columns, 1, {scores, block.columns, false},
              {view.v, input.kv_stride, false}, 0, output + view.out + block.first * width, width);
}

struct HeadGradient {
  float* q;
  float* k;  // [T, D] with stride kv_stride
  float* v;
  std::int64_t kv_stride;
};

bool backward_block(const Kernels& kernels, const AttentionShape& shape, const FloatInput& input,
                    const HeadView& view, const Block& block, float* scratch, const float* output,
                    const float* log_sum, const float* gradient_output, const HeadGradient& gradient) {
  const std::int64_t width = shape.heads * shape.dim;
  const std::int64_t row_at = view.out + block.first * width;
  const float scale = 1.0f / std::sqrt(static_cast<float>(shape.dim));
  float* p = scratch;
  float* gradient_p = scratch + block_queries * shape.keys();
  const Operand q{view.q + block.first * input.q_stride, input.q_stride, false};
  const Operand upstream{gradient_output + row_at, width, false};
  const std::int64_t n = block.columns;
  // Rows of dK and dV appear for the first time in the last block that reaches them: blocks run from the last
  // to the first, so the first one processed overwrites everything.
  const float accumulate = block.first + block.rows == shape.queries ? 0.0f : 1.0f;
  if (!gemm(block.rows, n, shape.dim, 1, q, {view.k, input.kv_stride, true}, 0, p, n)) return false;
  kernels.causal_probabilities(p, block.rows, n, block.visible, scale, log_sum + view.log_sum + block.first);
  if (!gemm(n, shape.dim, block.rows, 1, {p, n, true}, upstream, accumulate, gradient.v, gradient.kv_stride))
    return false;
  if (!gemm(block.rows, n, shape.dim, 1, upstream, {view.v, input.kv_stride, true}, 0, gradient_p, n))
    return false;
  kernels.softmax_backward(p, gradient_p, block.rows, n, scale, output + row_at, gradient_output + row_at,
                           width, shape.dim);
  return gemm(block.rows, shape.dim, n, 1, {gradient_p, n, false}, {view.k, input.kv_stride, false}, 0,
              gradient.q + block.first * input.q_stride, input.q_stride) &&
         gemm(n, shape.dim, block.rows, 1, {gradient_p, n, true}, q, accumulate, gradient.k,
              gradient.kv_stride);
}

// Small problems are done before another thread has woken up.
bool worth_threads(const AttentionShape& shape) {
  return shape.batch * shape.heads * shape.queries * shape.keys() * shape.dim > 65536;
}

std::int64_t block_count(const AttentionShape& shape) {
  return (shape.queries + block_queries - 1) / block_queries;
}

// Adds the heads of each group: [B, heads, T, 2, D] → rows of k and v.
void reduce_groups(const AttentionShape& shape, const float* per_head, std::int64_t stride, float* k,
                   float* v) {
  const std::int64_t group = shape.heads / shape.kv_heads;
#pragma omp parallel for collapse(2) schedule(static) if (worth_threads(shape))
  for (std::int64_t row = 0; row < shape.batch * shape.queries; ++row) {
    for (std::int64_t kv_head = 0; kv_head < shape.kv_heads; ++kv_head) {
      float* k_row = k + row * stride + kv_head * shape.dim;
      float* v_row = v + row * stride + kv_head * shape.dim;
      std::fill_n(k_row, shape.dim, 0.0f);
      std::fill_n(v_row, shape.dim, 0.0f);
      for (std::int64_t member = 0; member < group; ++member) {
        const std::int64_t head = kv_head * group + member;
        const std::int64_t sequence = row / shape.queries;
        const float* source =
            per_head +
            (((sequence * shape.heads + head) * shape.queries) + row % shape.queries) * 2 * shape.dim;
        for (std::int64_t i = 0; i < shape.dim; ++i) k_row[i] += source[i];
        for (std::int64_t i = 0; i < shape.dim; ++i) v_row[i] += source[shape.dim + i];
      }
    }
  }
}

void forward_floats(const Kernels& kernels, const AttentionShape& shape, const FloatInput& input,
                    float* output, float* log_sum) {
  const std::int64_t blocks = block_count(shape);
  const std::int64_t tasks = shape.batch * shape.heads * blocks;
  const std::int64_t scratch_floats = std::min(block_queries, shape.queries) * shape.keys();
  const at::Tensor scratch = make_floats({omp_get_max_threads(), scratch_floats});
  std::atomic<bool> failed{false};
#pragma omp parallel for schedule(dynamic) if (worth_threads(shape))
  for (std::int64_t task = 0; task < tasks; ++task) {
    const std::int64_t head = task / blocks;
    const HeadView view = view_of(shape, input, head / shape.heads, head % shape.heads);
    float* scores = floats(scratch) + omp_get_thread_num() * scratch_floats;
    if (!forward_block(kernels, shape, input, view, block_of(shape, blocks - 1 - task % blocks), scores,
                       output, log_sum)) {
      failed = true;
    }
  }
  if (failed) throw std::bad_alloc();
}

void backward_floats(const Kernels& kernels, const AttentionShape& shape, const FloatInput& input,
                     const float* output, const float* log_sum, const float* gradient_output,
                     const FloatGradient& gradient) {
  const std::int64_t blocks = block_count(shape);
  const std::int64_t head_count = shape.batch * shape.heads;
  const std::int64_t scratch_floats = 2 * block_queries * shape.keys();
  const at::Tensor scratch = make_floats({omp_get_max_threads(), scratch_floats});
  const bool grouped = shape.heads != shape.kv_heads;
  const std::int64_t head_floats = shape.queries * 2 * shape.dim;
  const at::Tensor per_head = grouped ? make_floats({head_count, head_floats}) : at::Tensor();
  std::atomic<bool> failed{false};
#pragma omp parallel for schedule(dynamic) if (worth_threads(shape))
  for (std::int64_t task = 0; task < head_count; ++task) {
    const std::int64_t head = task % shape.heads;
    const std::int64_t row = task / shape.heads * shape.queries;
    const HeadView view = view_of(shape, input, task / shape.heads, head);
    HeadGradient target{gradient.q + row * input.q_stride + head * shape.dim, nullptr, nullptr,
                        input.kv_stride};
    if (grouped) {
      target.k = floats(per_head) + task * head_floats;
      target.v = target.k + shape.dim;
      target.kv_stride = 2 * shape.dim;
    } else {
      target.k = gradient.k + row * input.kv_stride + head * shape.dim;
      target.v = gradient.v + row * input.kv_stride + head * shape.dim;
    }
    float* own = floats(scratch) + omp_get_thread_num() * scratch_floats;
    for (std::int64_t index = blocks; index-- > 0;) {
      if (!backward_block(kernels, shape, input, view, block_of(shape, index), own, output, log_sum,
                          gradient_output, target)) {
        failed = true;
      }
    }
  }
  if (failed) throw std::bad_alloc();
  if (grouped) reduce_groups(shape, floats(per_head), input.kv_stride, gradient.k, gradient.v);
}

// Rows of activations that lie `stride` apart, as fp32 with the same stride.
at::Tensor floats_of(const Kernels& kernels, const void* rows, std::int64_t count, std::int64_t stride,
                     std::int64_t width) {
  at::Tensor copy = make_floats({count * stride});
  kernels.widen(rows, (count - 1) * stride + width, floats(copy));
  return copy;
}

struct Widened {
  at::Tensor q, k, v;
  FloatInput input;
};
Widened widen_input(const Kernels& kernels, const AttentionShape& shape, const AttentionInput& input) {
  Widened wide;
  wide.q = floats_of(kernels, input.q, shape.batch * shape.queries, input.q_stride, shape.heads * shape.dim);
  wide.k =
      floats_of(kernels, input.k, shape.batch * shape.keys(), input.kv_stride, shape.kv_heads * shape.dim);
  wide.v =
      floats_of(kernels, input.v, shape.batch * shape.keys(), input.kv_stride, shape.kv_heads * shape.dim);
  wide.input = {floats(wide.q), floats(wide.k), floats(wide.v), input.q_stride, input.kv_stride};
  return wide;
}

}  // namespace

void attention_forward(const Kernels& kernels, const AttentionShape& shape, const AttentionInput& input,
                       void* output, float* log_sum) {
  if (kernels.element == Element::Float) {
    return forward_floats(kernels, shape,
                          {static_cast<const float*>(input.q), static_cast<const float*>(input.k),
                           static_cast<const float*>(input.v), input.q_stride, input.kv_stride},
                          static_cast<float*>(output), log_sum);
  }
  const Widened wide = widen_input(kernels, shape, input);
  const at::Tensor result = make_floats({shape.batch * shape.queries * shape.heads * shape.dim});
  forward_floats(kernels, shape, wide.input, floats(result), log_sum);
  kernels.narrow(floats(result), result.numel(), output);
}

void attention_backward(const Kernels& kernels, const AttentionShape& shape, const AttentionInput& input,
                        const void* output, const float* log_sum, const void* gradient_output,
                        const AttentionGradient& gradient) {
  if (kernels.element == Element::Float) {
    return backward_floats(
        kernels, shape,
        {static_cast<const float*>(input.q), static_cast<const float*>(input.k),
         static_cast<const float*>(input.v), input.q_stride, input.kv_stride},
        static_cast<const float*>(output), log_sum, static_cast<const float*>(gradient_output),
        {static_cast<float*>(gradient.q), static_cast<float*>(gradient.k), static_cast<float*>(gradient.v)});
  }
  const Widened wide = widen_input(kernels, shape, input);
  const std::int64_t rows = shape.batch * shape.queries;
  const std::int64_t width = shape.heads * shape.dim;
  const std::int64_t kv_width = shape.kv_heads * shape.dim;
  const at::Tensor out = floats_of(kernels, output, rows, width, width);
  const at::Tensor upstream = floats_of(kernels, gradient_output, rows, width, width);
  const at::Tensor q = make_floats({rows * input.q_stride});
  const at::Tensor k = make_floats({rows * input.kv_stride});
  const at::Tensor v = make_floats({rows * input.kv_stride});
  backward_floats(kernels, shape, wide.input, floats(out), log_sum, floats(upstream),
                  {floats(q), floats(k), floats(v)});
  for (std::int64_t row = 0; row < rows; ++row) {
    kernels.narrow(floats(q) + row * input.q_stride, width,
                   static_cast<Bf16*>(gradient.q) + row * input.q_stride);
    kernels.narrow(floats(k) + row * input.kv_stride, kv_width,
                   static_cast<Bf16*>(gradient.k) + row * input.kv_stride);
    kernels.narrow(floats(v) + row * input.kv_stride, kv_width,
                   static_cast<Bf16*>(gradient.v) + row * input.kv_stride);
  }
}

}  // namespace neuroshard::model
