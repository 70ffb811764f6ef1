// Attention of few queries against many keys: generation. Nothing is packed; keys and values are read once,
// where they are, in chunks whose results are put together in order (as "Flash-Decoding", Dao et al. 2023).
#pragma once

#include "core/model/detail/attention_panels.h"

namespace neuroshard::model {
namespace {

// Row (head, query) of a sequence is head · queries + query.
struct FewShared {
  float* q;        // [B, rows, padded], scaled
  float* sum;      // [B, chunks, rows, padded]: Σ 2^(score − highest) · v
  float* highest;  // [B, chunks, rows]
  float* total;    // [B, chunks, rows]: Σ 2^(score − highest)
};

inline FewShared few_shared(const AttentionShape& shape, float* memory) {
  const int64_t rows = shape.batch * shape.heads * shape.queries;
  const int64_t padded = attention_padded(shape.dim);
  const int64_t chunks = attention_chunks(shape);
  FewShared shared;
  shared.q = memory;
  shared.sum = shared.q + rows * padded;
  shared.highest = shared.sum + rows * chunks * padded;
  shared.total = shared.highest + rows * chunks;
  return shared;
}

inline void load_few_queries(const AttentionShape& shape, const AttentionInput& input, float* q) {
  const int64_t padded = attention_padded(shape.dim);
  for (int64_t sequence = 0; sequence < shape.batch; ++sequence) {
    for (int64_t head = 0; head < shape.heads; ++head) {
      const Value* from = values(input.q) + sequence * shape.queries * input.q_stride + head * shape.dim;
      float* to = q + (sequence * shape.heads + head) * shape.queries * padded;
      load_rows(from, input.q_stride, shape.queries, shape.dim, to);
      for (int64_t i = 0; i < shape.queries * padded; ++i) to[i] *= score_scale(shape);
    }
  }
}

// Keys [first, first + count) of a sequence.
struct Chunk {
  int64_t first;
  int64_t count;
  // Of them, those that a query sees.
  int64_t seen(const AttentionShape& shape, int64_t query) const {
    const int64_t end = shape.past + query + 1 - first;
    return end < 0 ? 0 : end < count ? end : count;
  }
};

constexpr int64_t few_keys = 8;

// scores [rows, attention_chunk]
inline void few_scores(const AttentionShape& shape, const Value* k, int64_t stride, const Chunk& chunk,
                       const float* q, float* panel, float* scores) {
  const int64_t padded = attention_padded(shape.dim);
  const int64_t shared = shape.heads / shape.kv_heads * shape.queries;
  for (int64_t key = 0; key < chunk.count; key += few_keys) {
    const int64_t left = chunk.count - key;
    const int64_t keys = left < few_keys ? left : few_keys;
    for (int64_t kv_head = 0; kv_head < shape.kv_heads; ++kv_head) {
      load_rows(k + (chunk.first + key) * stride + kv_head * shape.dim, stride, keys, shape.dim, panel);
      for (int64_t row = kv_head * shared; row < (kv_head + 1) * shared; ++row) {
        for (int64_t i = 0; i < keys; ++i) {
          Vec sum{};
          for (int64_t d = 0; d < padded; d += lanes)
            sum += load(q + row * padded + d) * load(panel + i * padded + d);
          scores[row * attention_chunk + key + i] = sum_of(sum);
        }
      }
    }
  }
}

// scores → 2^(score − highest) of the keys that the row sees; the rest becomes 0.
inline void few_softmax(float* scores, int64_t seen, float* highest, float* total) {
  float top = seen > 0 ? scores[0] : -INFINITY;
  for (int64_t i = 1; i < seen; ++i) top = scores[i] > top ? scores[i] : top;
  for (int64_t i = seen; i < attention_chunk; ++i) scores[i] = 0;
  Vec sum{};
  for (int64_t i = 0; i < seen; i += lanes) {
    Vec p = exp2_fast(load(scores + i) - top);
    p = lane_numbers() + static_cast<int32_t>(i) < static_cast<int32_t>(seen) ? p : Vec{};
    store(scores + i, p);
    sum += p;
  }
  *highest = top;
  *total = sum_of(sum);
}

// sum [rows, padded] = scores · v
inline void few_values(const AttentionShape& shape, const Value* v, int64_t stride, const Chunk& chunk,
                       const float* scores, float* panel, float* sum) {
  const int64_t padded = attention_padded(shape.dim);
  const int64_t shared = shape.heads / shape.kv_heads * shape.queries;
  memset(sum, 0, sizeof(float) * shape.heads * shape.queries * padded);
  for (int64_t key = 0; key < chunk.count; key += few_keys) {
    const int64_t left = chunk.count - key;
    const int64_t keys = left < few_keys ? left : few_keys;
    for (int64_t kv_head = 0; kv_head < shape.kv_heads; ++kv_head) {
      load_rows(v + (chunk.first + key) * stride + kv_head * shape.dim, stride, keys, shape.dim, panel);
      for (int64_t row = kv_head * shared; row < (kv_head + 1) * shared; ++row) {
        const float* p = scores + row * attention_chunk + key;
        for (int64_t d = 0; d < padded; d += lanes) {
          Vec value = load(sum + row * padded + d);
          for (int64_t i = 0; i < keys; ++i) value += load(panel + i * padded + d) * p[i];
          store(sum + row * padded + d, value);
        }
      }
    }
  }
}

// Puts the chunks of one row together.
inline void finish_row(const AttentionShape& shape, const FewShared& shared, int64_t sequence, int64_t row,
                       Value* output, float* log_sum) {
  const int64_t padded = attention_padded(shape.dim);
  const int64_t rows = shape.heads * shape.queries;
  const int64_t chunks = attention_chunks(shape);
  const int64_t first = sequence * chunks * rows + row;
  float top = shared.highest[first];
  for (int64_t chunk = 1; chunk < chunks; ++chunk) {
    const float other = shared.highest[first + chunk * rows];
    top = other > top ? other : top;
  }
  float* sum = shared.sum + first * padded;
  float total = 0;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const int64_t at = first + chunk * rows;
    const float factor = exp2_fast(all(shared.highest[at] - top))[0];
    const float* part = shared.sum + at * padded;
    total += shared.total[at] * factor;
    for (int64_t d = 0; d < padded; d += lanes)
      store(sum + d, load(part + d) * factor + (chunk == 0 ? Vec{} : load(sum + d)));
  }
  const int64_t head = row / shape.queries;
  const int64_t query = row % shape.queries;
  const int64_t at = ((sequence * shape.queries + query) * shape.heads + head) * shape.dim;
  store_rows(sum, 1, shape.dim, 1.0f / total, output + at, 0);
  log_sum[sequence * rows + row] = top * log_2 + logf(total);
}

// Tasks: (sequence, chunk).
inline void attention_forward_few(const AttentionShape& shape, const AttentionInput& input, int threads,
                                  float* scratch, Value* output, float* log_sum) {
  const int64_t padded = attention_padded(shape.dim);
  const int64_t rows = shape.heads * shape.queries;
  const int64_t chunks = attention_chunks(shape);
  const int64_t keys = shape.past + shape.queries;
  const int64_t floats = attention_forward_floats(shape);
  const FewShared shared = few_shared(shape, scratch + threads * floats);
  load_few_queries(shape, input, shared.q);
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t task = 0; task < shape.batch * chunks; ++task) {
    float* scores = scratch + omp_get_thread_num() * floats;
    float* panel = scores + rows * attention_chunk;
    const int64_t sequence = task / chunks;
    const int64_t first = task % chunks * attention_chunk;
    const Chunk chunk{first, keys - first < attention_chunk ? keys - first : attention_chunk};
    const int64_t offset = sequence * keys * input.kv_stride;
    few_scores(shape, values(input.k) + offset, input.kv_stride, chunk, shared.q + sequence * rows * padded,
               panel, scores);
    for (int64_t row = 0; row < rows; ++row) {
      few_softmax(scores + row * attention_chunk, chunk.seen(shape, row % shape.queries),
                  shared.highest + task * rows + row, shared.total + task * rows + row);
    }
    few_values(shape, values(input.v) + offset, input.kv_stride, chunk, scores, panel,
               shared.sum + task * rows * padded);
  }
  for (int64_t sequence = 0; sequence < shape.batch; ++sequence) {
    for (int64_t row = 0; row < rows; ++row) finish_row(shape, shared, sequence, row, output, log_sum);
  }
}

}  // namespace
}  // namespace neuroshard::model
