// Attention's backward pass over blocks of queries and keys; probabilities are made again from the kept log Σ
// exp. Equations: core/model/attention.h.
#pragma once

#include "core/model/detail/attention_forward.h"

namespace neuroshard::model {
namespace {

struct BackwardScratch {
  float* k;  // [queries, padded]
  float* v;
  float* gradient_k;
  float* gradient_v;
  float* q;  // [attention_block, padded]
  float* upstream;
  float* q_turned;  // [padded, attention_block]
  float* upstream_turned;
  float* gradient_q;  // [attention_block, padded]
  float* p;           // [attention_block, attention_block], turned
  float* gradient_p;
  float* log_sum;  // [attention_block], base 2
  float* delta;
};

inline BackwardScratch backward_scratch(const AttentionShape& shape, float* memory) {
  const int64_t padded = attention_padded(shape.dim);
  const int64_t rows = shape.queries * padded;
  const int64_t block = attention_block * padded;
  BackwardScratch scratch;
  scratch.k = memory;
  scratch.v = scratch.k + rows;
  scratch.gradient_k = scratch.v + rows;
  scratch.gradient_v = scratch.gradient_k + rows;
  scratch.q = scratch.gradient_v + rows;
  scratch.upstream = scratch.q + block;
  scratch.q_turned = scratch.upstream + block;
  scratch.upstream_turned = scratch.q_turned + block;
  scratch.gradient_q = scratch.upstream_turned + block;
  scratch.p = scratch.gradient_q + block;
  scratch.gradient_p = scratch.p + attention_block * attention_block;
  scratch.log_sum = scratch.gradient_p + attention_block * attention_block;
  scratch.delta = scratch.log_sum + attention_block;
  return scratch;
}

// Of one vector of queries: scores → probabilities, gradient_p → gradient of the scores without their scale;
// zero where masked.
inline void softmax_backward_lanes(const Pair& pair, int64_t first_lane, const BackwardScratch& scratch) {
  const IntVec query = lane_numbers() + static_cast<int32_t>(first_lane + pair.diagonal);
  const int64_t whole = pair.keys_before(first_lane + 1);
  const int64_t end = pair.keys_before(first_lane + lanes);
  const Vec log_sum = load(scratch.log_sum + first_lane);
  const Vec delta = load(scratch.delta + first_lane);
  float* p_at = scratch.p + first_lane;
  float* gradient_at = scratch.gradient_p + first_lane;
  for (int64_t key = 0; key < whole; ++key) {
    const Vec p = exp2_fast(load(p_at + key * attention_block) - log_sum);
    store(p_at + key * attention_block, p);
    store(gradient_at + key * attention_block, p * (load(gradient_at + key * attention_block) - delta));
  }
  for (int64_t key = whole; key < end; ++key) {
    const Vec p = exp2_fast(load(p_at + key * attention_block) - log_sum);
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
inline void add_turned(const Pair& pair, const float* turned, const float* rows, int64_t padded, float* sum,
                       Previous previous) {
  for_row_groups(pair.keys, [&](int64_t key, auto group) {
    const int64_t first = pair.first_query(key);
    const TileOperands operands{turned + key * attention_block + first,
                                attention_block,
                                rows + first * padded,
                                padded,
                                pair.queries - first,
                                sum + key * padded,
                                padded,
                                previous,
                                nullptr};
    multiply_rows<decltype(group)::count, false>(operands, padded / lanes);
  });
}

// The block's queries and gradients of the output, log_sum and delta = Σ_D output · gradient of the output.
inline void load_queries(const AttentionShape& shape, const Value* q, int64_t q_stride, const Value* output,
                         const Value* gradient_output, const float* log_sum, int64_t queries,
                         const BackwardScratch& scratch) {
  const int64_t padded = attention_padded(shape.dim);
  const int64_t width = shape.heads * shape.dim;
  load_rows(q, q_stride, queries, shape.dim, score_scale(shape), scratch.q);
  turn_rows(scratch.q, queries, padded, scratch.q_turned);
  load_rows(gradient_output, width, queries, shape.dim, 1.0f, scratch.upstream);
  turn_rows(scratch.upstream, queries, padded, scratch.upstream_turned);
  for (int64_t i = 0; i < attention_block; ++i) {
    scratch.log_sum[i] = i < queries ? log_sum[i] * log2_e : 0.0f;
    float delta = 0;
    if (i < queries) {
      const Value* out = output + i * width;
      const float* upstream = scratch.upstream + i * padded;
#pragma omp simd reduction(+ : delta)
      for (int64_t d = 0; d < shape.dim; ++d) delta += widened(out[d]) * upstream[d];
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

inline void backward_block(const AttentionShape& shape, const BackwardArrays& arrays, int64_t sequence,
                           int64_t head, int64_t first, const BackwardScratch& scratch) {
  const int64_t padded = attention_padded(shape.dim);
  const int64_t left = shape.queries - first;
  const int64_t queries = left < attention_block ? left : attention_block;
  const int64_t row = sequence * shape.queries + first;
  const int64_t stride = arrays.input.q_stride;
  const int64_t q_at = row * stride + head * shape.dim;
  const int64_t out_at = (row * shape.heads + head) * shape.dim;
  load_queries(shape, values(arrays.input.q) + q_at, stride, arrays.output + out_at,
               arrays.gradient_output + out_at,
               arrays.log_sum + (sequence * shape.heads + head) * shape.queries + first, queries, scratch);
  // Blocks run from the last, which sees all keys, to the first.
  const Previous previous = left <= attention_block ? Previous::Ignored : Previous::Added;
  for (int64_t key = 0; key < first + queries; key += attention_block) {
    const Pair pair = pair_of(first, queries, key);
    const int64_t at = key * padded;
    turned_scores(pair, scratch.k + at, padded, shape.dim, scratch.q_turned, scratch.p);
    turned_scores(pair, scratch.v + at, padded, shape.dim, scratch.upstream_turned, scratch.gradient_p);
    for (int64_t lane = 0; lane < queries; lane += lanes) softmax_backward_lanes(pair, lane, scratch);
    add_turned(pair, scratch.p, scratch.upstream, padded, scratch.gradient_v + at, previous);
    add_turned(pair, scratch.gradient_p, scratch.q, padded, scratch.gradient_k + at, previous);
    add_weighted(pair, scratch.gradient_p, scratch.k + at, padded, scratch.gradient_q,
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
  // q was loaded with the scale of the scores and log2 e: what is left of it is ln 2.
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
    store_rows(first, 1, shape.dim, log_2, values(gradient.k) + at, stride);
    store_rows(first + rows, 1, shape.dim, 1.0f, values(gradient.v) + at, stride);
  }
}

// Tasks: (sequence, head).
void attention_backward(const AttentionShape& shape, const AttentionInput& input, const void* output,
                        const float* log_sum, const void* gradient_output, int threads, float* scratch,
                        const AttentionGradient& gradient) {
  const BackwardArrays arrays{input, values(output), log_sum, values(gradient_output), gradient};
  const int64_t blocks = (shape.queries + attention_block - 1) / attention_block;
  const int64_t group = shape.heads / shape.kv_heads;
  const int64_t rows = shape.queries * attention_padded(shape.dim);
  const int64_t floats = attention_backward_floats(shape);
  float* per_head = scratch + threads * floats;
#pragma omp parallel num_threads(threads)
  {
    BackwardScratch own = backward_scratch(shape, scratch + omp_get_thread_num() * floats);
    int64_t loaded = -1;
#pragma omp for schedule(dynamic)
    for (int64_t task = 0; task < shape.batch * shape.heads; ++task) {
      const int64_t sequence = task / shape.heads;
      const int64_t head = task % shape.heads;
      const int64_t kv_head = head / group;
      const int64_t kv = sequence * shape.kv_heads + kv_head;
      if (kv != loaded) load_keys(shape, input, sequence, kv_head, own.k, own.v);
      loaded = kv;
      if (group > 1) {
        own.gradient_k = per_head + task * 2 * rows;
        own.gradient_v = own.gradient_k + rows;
      }
      for (int64_t block = blocks; block-- > 0;)
        backward_block(shape, arrays, sequence, head, block * attention_block, own);
      if (group > 1) continue;
      const int64_t at = sequence * shape.queries * input.kv_stride + head * shape.dim;
      store_rows(own.gradient_k, shape.queries, shape.dim, log_2, values(gradient.k) + at, input.kv_stride);
      store_rows(own.gradient_v, shape.queries, shape.dim, 1.0f, values(gradient.v) + at, input.kv_stride);
    }
  }
  if (group > 1) reduce_groups(shape, per_head, input.kv_stride, threads, gradient);
}

}  // namespace
}  // namespace neuroshard::model
