// Attention's backward pass over blocks of queries and keys; probabilities are made again from the kept log Σ
// exp. Equations: core/model/attention.h.
#pragma once

#include "core/model/detail/attention_forward.h"

namespace neuroshard::model {
namespace {

// Scratch memory of one thread. "first", "second" and "turned" are roles as in SingleOperands; for single
// values one copy plays the first two.
struct BackwardScratch {
  float* k_first;  // [queries, padded]
  float* k_second;
  float* v_first;
  float* gradient_k;  // [queries, padded]
  float* gradient_v;
  float* q_second;  // [attention_block, padded]
  float* upstream_second;
  float* q_turned;  // [padded, attention_block]
  float* upstream_turned;
  float* gradient_q;  // [attention_block, padded]
  float* p;           // [attention_block, attention_block], turned
  float* gradient_p;
  float* pairs;    // of one of them
  float* log_sum;  // [attention_block], base 2
  float* delta;
};

template <class Operands>
inline BackwardScratch backward_scratch(const AttentionShape& shape, float* memory) {
  const int64_t padded = attention_padded(shape.dim);
  const int64_t rows = attention_even(shape.queries) * padded;
  const int64_t block = attention_block * padded;
  const int64_t operand = attention_even(shape.queries) * Operands::stride(padded);
  BackwardScratch scratch;
  scratch.k_first = memory;
  scratch.v_first = scratch.k_first + operand;
  scratch.k_second = Operands::separate ? scratch.v_first + operand : scratch.k_first;
  scratch.gradient_k = memory + 2 * rows;
  scratch.gradient_v = scratch.gradient_k + rows;
  scratch.q_second = scratch.gradient_v + rows;
  scratch.upstream_second = scratch.q_second + block;
  scratch.q_turned = scratch.upstream_second + block;
  scratch.upstream_turned = scratch.q_turned + block;
  scratch.gradient_q = scratch.upstream_turned + block;
  scratch.p = scratch.gradient_q + block;
  scratch.gradient_p = scratch.p + attention_block * attention_block;
  scratch.pairs = scratch.gradient_p + attention_block * attention_block;
  scratch.log_sum = scratch.pairs + attention_block * attention_block;
  scratch.delta = scratch.log_sum + attention_block;
  return scratch;
}

// Of one vector of queries: scores → probabilities, gradient_p → gradient of the scores without their scale;
// zero where masked.
inline void softmax_backward_lanes(const Pair& pair, int64_t first_lane, float scale,
                                   const BackwardScratch& scratch) {
  const IntVec query = lane_numbers() + static_cast<int32_t>(first_lane + pair.diagonal);
  const int64_t whole = pair.keys_before(first_lane + 1);
  const int64_t end = pair.keys_before(first_lane + lanes);
  const Vec log_sum = load(scratch.log_sum + first_lane);
  const Vec delta = load(scratch.delta + first_lane);
  float* p_at = scratch.p + first_lane;
  float* gradient_at = scratch.gradient_p + first_lane;
  for (int64_t key = 0; key < whole; ++key) {
    const Vec p = exp2_fast(load(p_at + key * attention_block) * scale - log_sum);
    store(p_at + key * attention_block, p);
    store(gradient_at + key * attention_block, p * (load(gradient_at + key * attention_block) - delta));
  }
  for (int64_t key = whole; key < end; ++key) {
    const Vec p = exp2_fast(load(p_at + key * attention_block) * scale - log_sum);
    const Vec gradient = p * (load(gradient_at + key * attention_block) - delta);
    const IntVec seen = query >= static_cast<int32_t>(key);
    store(p_at + key * attention_block, seen ? p : Vec{});
    store(gradient_at + key * attention_block, seen ? gradient : Vec{});
  }
  for (int64_t key = end; key < pair.keys; ++key) {
    store(p_at + key * attention_block, Vec{});
    store(gradient_at + key * attention_block, Vec{});
  }
}

// sum [keys, padded] += turned · rows [queries, padded]
template <class Operands>
inline void add_turned(const Pair& pair, const float* turned, const float* rows, int64_t padded, float* sum,
                       Previous previous) {
  using Arithmetic = typename Operands::Arithmetic;
  const int64_t stride = Operands::stride(attention_block);
  for_row_groups(pair.keys, [&](int64_t key, auto group) {
    const int64_t all_steps = Arithmetic::steps(pair.queries);
    const int64_t first = Operands::stride(pair.first_query(key));
    const TileOperands operands{turned + key * stride + first,
                                stride,
                                rows + first * padded,
                                padded,
                                all_steps - first,
                                sum + key * padded,
                                padded,
                                previous,
                                nullptr};
    multiply_rows<Arithmetic, decltype(group)::count, false>(operands, padded / lanes);
  });
}

// The block's log_sum and delta = Σ_D output · gradient of the output.
inline void load_sums(const AttentionShape& shape, const Value* output, const Value* gradient_output,
                      const float* log_sum, int64_t queries, const BackwardScratch& scratch) {
  const int64_t width = shape.heads * shape.dim;
  for (int64_t i = 0; i < attention_block; ++i) {
    scratch.log_sum[i] = i < queries ? log_sum[i] * log2_e : 0.0f;
    float delta = 0;
    if (i < queries) {
      const Value* out = output + i * width;
      const Value* upstream = gradient_output + i * width;
#pragma omp simd reduction(+ : delta)
      for (int64_t d = 0; d < shape.dim; ++d) delta += widened(out[d]) * widened(upstream[d]);
    }
    scratch.delta[i] = delta;
  }
}

struct BackwardArrays {
  const AttentionInput& input;
  const Value* output;
  const float* log_sum;
  const Value* gradient_output;
  const AttentionGradient& gradient;
};

template <class Operands>
inline void backward_block(const AttentionShape& shape, const BackwardArrays& arrays, int64_t sequence,
                           int64_t head, int64_t first, const BackwardScratch& scratch) {
  using Arithmetic = typename Operands::Arithmetic;
  const int64_t padded = attention_padded(shape.dim);
  const int64_t left = shape.queries - first;
  const int64_t queries = left < attention_block ? left : attention_block;
  const int64_t row = sequence * shape.queries + first;
  const int64_t stride = arrays.input.q_stride;
  const int64_t width = shape.heads * shape.dim;
  const int64_t q_at = row * stride + head * shape.dim;
  const int64_t out_at = row * width + head * shape.dim;
  const Value* q = values(arrays.input.q) + q_at;
  const Value* upstream = arrays.gradient_output + out_at;
  load_sums(shape, arrays.output + out_at, upstream,
            arrays.log_sum + (sequence * shape.heads + head) * shape.queries + first, queries, scratch);
  Operands::load_turned(q, stride, queries, shape.dim, scratch.q_second, scratch.q_turned);
  Operands::load_turned(upstream, width, queries, shape.dim, scratch.upstream_second,
                        scratch.upstream_turned);
  if (Operands::separate) {
    Operands::load_second(q, stride, queries, shape.dim, scratch.q_second);
    Operands::load_second(upstream, width, queries, shape.dim, scratch.upstream_second);
  }
  // Blocks run from the last, which sees all keys, to the first.
  const Previous previous = left <= attention_block ? Previous::Ignored : Previous::Added;
  for (int64_t key = 0; key < first + queries; key += attention_block) {
    const Pair pair = pair_of(first, queries, key);
    const int64_t at = key * padded;
    const int64_t operand_stride = Operands::stride(padded);
    const int64_t operand_at = key * operand_stride;
    turned_scores<Arithmetic>(pair, scratch.k_first + operand_at, operand_stride, shape.dim, scratch.q_turned,
                              scratch.p);
    turned_scores<Arithmetic>(pair, scratch.v_first + operand_at, operand_stride, shape.dim,
                              scratch.upstream_turned, scratch.gradient_p);
    for (int64_t lane = 0; lane < queries; lane += lanes)
      softmax_backward_lanes(pair, lane, score_scale(shape), scratch);
    const float* p = Operands::over_queries(pair, scratch.p, scratch.pairs);
    add_turned<Operands>(pair, p, scratch.upstream_second, padded, scratch.gradient_v + at, previous);
    const float* turned = Operands::over_queries(pair, scratch.gradient_p, scratch.pairs);
    add_turned<Operands>(pair, turned, scratch.q_second, padded, scratch.gradient_k + at, previous);
    const float* gradient_p = Operands::over_keys(pair, scratch.gradient_p, scratch.pairs);
    add_weighted<Arithmetic>(pair, gradient_p, scratch.k_second + operand_at, padded, scratch.gradient_q,
                             key == 0 ? Previous::Ignored : Previous::Added, nullptr);
  }
  store_rows(scratch.gradient_q, queries, shape.dim, score_scale(shape) * log_2,
             values(arrays.gradient.q) + q_at, stride);
}

// Adds the heads of each group, in order: [B, heads, {k, v}, T, padded] → rows of k and v.
inline void reduce_groups(const AttentionShape& shape, float* per_head, int64_t stride, int threads,
                          const AttentionGradient& gradient) {
  const int64_t padded = attention_padded(shape.dim);
  const int64_t group = shape.heads / shape.kv_heads;
  const int64_t rows = shape.queries * padded;
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t task = 0; task < shape.batch * shape.kv_heads * shape.queries; ++task) {
    const int64_t kv = task / shape.queries;
    const int64_t query = task % shape.queries;
    float* first = per_head + kv * group * 2 * rows + query * padded;
    for (int64_t member = 1; member < group; ++member) {
      const float* other = first + member * 2 * rows;
#pragma omp simd
      for (int64_t i = 0; i < padded; ++i) first[i] += other[i];
#pragma omp simd
      for (int64_t i = 0; i < padded; ++i) first[rows + i] += other[rows + i];
    }
    const int64_t at =
        (kv / shape.kv_heads * shape.queries + query) * stride + kv % shape.kv_heads * shape.dim;
    store_rows(first, 1, shape.dim, score_scale(shape) * log_2, values(gradient.k) + at, stride);
    store_rows(first + rows, 1, shape.dim, 1.0f, values(gradient.v) + at, stride);
  }
}

// Tasks: (sequence, head).
template <class Operands>
inline void attention_backward_blocks(const AttentionShape& shape, const AttentionInput& input,
                                      const void* output, const float* log_sum, const void* gradient_output,
                                      int threads, float* scratch, const AttentionGradient& gradient) {
  const BackwardArrays arrays{input, values(output), log_sum, values(gradient_output), gradient};
  const int64_t blocks = (shape.queries + attention_block - 1) / attention_block;
  const int64_t group = shape.heads / shape.kv_heads;
  const int64_t rows = shape.queries * attention_padded(shape.dim);
  const int64_t floats = attention_backward_floats(shape);
  float* per_head = scratch + threads * floats;
#pragma omp parallel num_threads(threads)
  {
    BackwardScratch own = backward_scratch<Operands>(shape, scratch + omp_get_thread_num() * floats);
    int64_t loaded = -1;
#pragma omp for schedule(dynamic)
    for (int64_t task = 0; task < shape.batch * shape.heads; ++task) {
      const int64_t sequence = task / shape.heads;
      const int64_t head = task % shape.heads;
      const int64_t kv_head = head / group;
      const int64_t kv = sequence * shape.kv_heads + kv_head;
      const int64_t kv_at = sequence * shape.queries * input.kv_stride + kv_head * shape.dim;
      const Value* k = values(input.k) + kv_at;
      if (kv != loaded) {
        Operands::load_first(k, input.kv_stride, shape.queries, shape.dim, own.k_first);
        Operands::load_first(values(input.v) + kv_at, input.kv_stride, shape.queries, shape.dim, own.v_first);
        if (Operands::separate)
          Operands::load_second(k, input.kv_stride, shape.queries, shape.dim, own.k_second);
      }
      loaded = kv;
      if (group > 1) {
        own.gradient_k = per_head + task * 2 * rows;
        own.gradient_v = own.gradient_k + rows;
      }
      for (int64_t block = blocks; block-- > 0;)
        backward_block<Operands>(shape, arrays, sequence, head, block * attention_block, own);
      if (group > 1) continue;
      const int64_t at = sequence * shape.queries * input.kv_stride + head * shape.dim;
      store_rows(own.gradient_k, shape.queries, shape.dim, score_scale(shape) * log_2,
                 values(gradient.k) + at, input.kv_stride);
      store_rows(own.gradient_v, shape.queries, shape.dim, 1.0f, values(gradient.v) + at, input.kv_stride);
    }
  }
  if (group > 1) reduce_groups(shape, per_head, input.kv_stride, threads, gradient);
}

}  // namespace
}  // namespace neuroshard::model
