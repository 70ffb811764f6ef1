// Attention of few queries against many keys: generation. Nothing is packed; keys and values are read once,
// where they are, in chunks whose results are put together in order (as "Flash-Decoding", Dao et al. 2023).
#pragma once

#include "core/model/detail/attention_few_products.h"
#include "core/model/detail/attention_panels.h"

namespace neuroshard::model {
namespace {

// Bytes that are asked for ahead of their use, where keys and values are more than a processor's caches near
// the core hold.
constexpr int64_t prefetched_bytes = 64 * 1024;
constexpr int64_t least_prefetched = 4 * 1024 * 1024;

// Row (head, query) of a sequence is head · queries + query.
struct FewShared {
  Value* q;        // [B, rows, q_pitch]
  float* sum;      // [B, chunks, rows, padded]: Σ 2^(score − highest) · v
  float* highest;  // [B, chunks, rows]
  float* total;    // [B, chunks, rows]: Σ 2^(score − highest)
  int64_t q_pitch;
};

inline FewShared few_shared(const AttentionShape& shape, float* memory) {
  const int64_t rows = shape.batch * shape.heads * shape.queries;
  const int64_t padded = attention_padded(shape.dim);
  const int64_t chunks = attention_chunks(shape);
  FewShared shared;
  shared.q = reinterpret_cast<Value*>(memory);
  shared.q_pitch = whole_factors(shape.dim);
  shared.sum = memory + rows * padded;
  shared.highest = shared.sum + rows * chunks * padded;
  shared.total = shared.highest + rows * chunks;
  return shared;
}

inline void load_few_queries(const AttentionShape& shape, const AttentionInput& input,
                             const FewShared& shared) {
  Value* to = shared.q;
  for (int64_t sequence = 0; sequence < shape.batch; ++sequence) {
    for (int64_t head = 0; head < shape.heads; ++head) {
      for (int64_t query = 0; query < shape.queries; ++query) {
        const int64_t row = sequence * shape.queries + query;
        memcpy(to, values(input.q) + row * input.q_stride + head * shape.dim, shape.dim * sizeof(Value));
        memset(to + shape.dim, 0, (shared.q_pitch - shape.dim) * sizeof(Value));
        to += shared.q_pitch;
      }
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

inline int64_t rows_per_kv_head(const AttentionShape& shape) {
  return shape.heads / shape.kv_heads * shape.queries;
}

// How far ahead lines are asked for, in activations: whole rows, so that they are those of the same kv head.
inline int64_t few_ahead(const AttentionShape& shape, int64_t stride) {
  const int64_t row_bytes = shape.kv_heads * shape.dim * static_cast<int64_t>(sizeof(Value));
  if (2 * (shape.past + shape.queries) * row_bytes < least_prefetched) return 0;
  return ((prefetched_bytes + row_bytes - 1) / row_bytes) * stride;
}

// The vector of keys that the end of a chunk does not fill, with zeros for those that it lacks.
inline KvRows padded_keys(const KvRows& k, int64_t keys, int64_t dim, Value* panel) {
  memset(panel, 0, lanes * dim * sizeof(Value));
  for (int64_t i = 0; i < keys; ++i) memcpy(panel + i * dim, k.first + i * k.stride, dim * sizeof(Value));
  return {panel, dim};
}

// scores [rows, attention_chunk], to base 2
inline void few_scores(const AttentionShape& shape, const Value* k, int64_t stride, const Chunk& chunk,
                       const Value* q, int64_t q_pitch, Value* panel, float* scores) {
  const int64_t shared = rows_per_kv_head(shape);
  const int64_t ahead = few_ahead(shape, stride);
  const float scale = score_scale(shape);
  for (int64_t block = 0; block < chunk.count; block += few_keys) {
    const int64_t end = block + few_keys < chunk.count ? block + few_keys : chunk.count;
    for (int64_t kv_head = 0; kv_head < shape.kv_heads; ++kv_head) {
      for (int64_t key = block; key < end; key += lanes) {
        KvRows keys{k + (chunk.first + key) * stride + kv_head * shape.dim, stride};
        if (end - key < lanes) keys = padded_keys(keys, end - key, shape.dim, panel);
        for_row_groups(kv_head * shared, (kv_head + 1) * shared, [&](int64_t row, auto rows) {
          few_dots<decltype(rows)::value>(q + row * q_pitch, q_pitch, keys, shape.dim, ahead, scale,
                                          scores + row * attention_chunk + key, attention_chunk);
        });
      }
    }
  }
}

// scores → 2^(score − highest) of the keys that the row sees; what follows has no meaning.
inline void few_softmax(float* scores, int64_t seen, float* highest, float* total) {
  Vec top = all(-INFINITY);
  for_vectors(seen, [&](int64_t i, auto extent) { top = larger(load(scores + i, extent, -INFINITY), top); });
  *highest = largest_of(top);
  Vec sum{};
  for (int64_t i = 0; i < seen; i += lanes) {
    Vec p = exp2_fast(load(scores + i) - *highest);
    p = lane_numbers() + static_cast<int32_t>(i) < static_cast<int32_t>(seen) ? p : Vec{};
    store(scores + i, p);
    sum += p;
  }
  *total = sum_of(sum);
}

// sum [rows, padded] = weights · v
inline void few_values(const AttentionShape& shape, const Value* v, int64_t stride, const Chunk& chunk,
                       const float* weights, float* sum) {
  const int64_t padded = attention_padded(shape.dim);
  const int64_t shared = rows_per_kv_head(shape);
  const int64_t ahead = few_ahead(shape, stride);
  const int64_t by_all = chunk.seen(shape, 0);
  memset(sum, 0, sizeof(float) * shape.heads * shape.queries * padded);
  const auto rows_of = [&](int64_t kv_head, int64_t key) {
    return KvRows{v + (chunk.first + key) * stride + kv_head * shape.dim, stride};
  };
  for (int64_t key = 0; key < by_all; key += few_keys) {
    const int64_t keys = by_all - key < few_keys ? by_all - key : few_keys;
    for (int64_t kv_head = 0; kv_head < shape.kv_heads; ++kv_head) {
      const KvRows part = rows_of(kv_head, key);
      for_row_groups(kv_head * shared, (kv_head + 1) * shared, [&](int64_t row, auto rows) {
        few_weighted<decltype(rows)::value>(weights + row * attention_chunk + key, attention_chunk, part,
                                            keys, shape.dim, ahead, sum + row * padded, padded);
      });
    }
  }
  // Later queries see a few keys more.
  for (int64_t row = 0; row < shape.heads * shape.queries; ++row) {
    const int64_t keys = chunk.seen(shape, row % shape.queries) - by_all;
    if (keys == 0) continue;
    few_weighted<1>(weights + row * attention_chunk + by_all, attention_chunk, rows_of(row / shared, by_all),
                    keys, shape.dim, ahead, sum + row * padded, padded);
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

// Tasks: (sequence, chunk), then (sequence, row).
inline void attention_forward_few(const AttentionShape& shape, const AttentionInput& input, int threads,
                                  float* scratch, Value* output, float* log_sum) {
  const int64_t padded = attention_padded(shape.dim);
  const int64_t rows = shape.heads * shape.queries;
  const int64_t chunks = attention_chunks(shape);
  const int64_t keys = shape.past + shape.queries;
  const int64_t floats = attention_forward_floats(shape);
  const FewShared shared = few_shared(shape, scratch + threads * floats);
  load_few_queries(shape, input, shared);
#pragma omp parallel num_threads(threads) if (shape.batch * chunks > 1)
  {
    float* scores = scratch + omp_get_thread_num() * floats;
    Value* panel = reinterpret_cast<Value*>(scores + rows * attention_chunk);
#pragma omp for schedule(static)
    for (int64_t task = 0; task < shape.batch * chunks; ++task) {
      const int64_t sequence = task / chunks;
      const int64_t first = task % chunks * attention_chunk;
      const Chunk chunk{first, keys - first < attention_chunk ? keys - first : attention_chunk};
      const int64_t offset = sequence * keys * input.kv_stride;
      few_scores(shape, values(input.k) + offset, input.kv_stride, chunk,
                 shared.q + sequence * rows * shared.q_pitch, shared.q_pitch, panel, scores);
      for (int64_t row = 0; row < rows; ++row) {
        few_softmax(scores + row * attention_chunk, chunk.seen(shape, row % shape.queries),
                    shared.highest + task * rows + row, shared.total + task * rows + row);
      }
      few_values(shape, values(input.v) + offset, input.kv_stride, chunk, scores,
                 shared.sum + task * rows * padded);
    }
#pragma omp for schedule(static)
    for (int64_t row = 0; row < shape.batch * rows; ++row)
      finish_row(shape, shared, row / rows, row % rows, output, log_sum);
  }
}

}  // namespace
}  // namespace neuroshard::model
