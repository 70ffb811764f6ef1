// Attention's forward pass over blocks of queries and keys with a running softmax (Dao et al. 2022). Scores
// are kept turned, [keys, queries], so that the softmax of a query runs down one lane of a vector.
#pragma once

#include "core/model/detail/attention_panels.h"
#include "core/model/detail/attention_tiles.h"

namespace neuroshard::model {
namespace {

// scores [keys, attention_block] = rows · turned, for the vectors that hold a visible score.
inline void turned_scores(const Pair& pair, const float* rows, int64_t padded, int64_t dim,
                          const float* turned, float* scores) {
  for_row_groups(pair.keys, [&](int64_t key, auto group) {
    const int64_t skipped = pair.first_query(key) / lanes;
    if (skipped >= pair.vectors()) return;
    const TileOperands operands{rows + key * padded,
                                padded,
                                turned + skipped * lanes,
                                attention_block,
                                dim,
                                scores + key * attention_block + skipped * lanes,
                                attention_block,
                                Previous::Ignored,
                                nullptr};
    multiply_rows<decltype(group)::count, false>(operands, pair.vectors() - skipped);
  });
}

// What the softmax has seen so far, per query of a block.
struct RunningSoftmax {
  float* highest;  // score
  float* sum;      // of 2^(score − highest)
  float* factor;   // that the last block of keys put on what was summed before it
};

// The larger of start and a column of vectors; four at a time, so that one need not wait for the other.
inline Vec highest_of(const float* scores, int64_t count, Vec start) {
  Vec found[4] = {start, start, start, start};
  int64_t key = 0;
  for (; key + 4 <= count; key += 4) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) found[i] = larger(load(scores + (key + i) * attention_block), found[i]);
  }
  for (; key < count; ++key) found[0] = larger(load(scores + key * attention_block), found[0]);
  return larger(larger(found[0], found[1]), larger(found[2], found[3]));
}

// Scores of one vector of queries → 2^(score − highest), zero where masked.
inline void softmax_lanes(const Pair& pair, int64_t first_lane, float* scores, bool first_keys,
                          const RunningSoftmax& running) {
  const IntVec query = lane_numbers() + static_cast<int32_t>(first_lane + pair.diagonal);
  // Every key before `whole` is seen by all lanes, none from `end` on by any.
  const int64_t whole = pair.keys_before(first_lane + 1);
  const int64_t end = pair.keys_before(first_lane + lanes);
  Vec highest = first_keys ? all(-INFINITY) : load(running.highest + first_lane);
  const Vec before = highest;
  for (int64_t key = 0; key < whole; ++key) highest = larger(load(scores + key * attention_block), highest);
  for (int64_t key = whole; key < end; ++key) {
    const Vec score = load(scores + key * attention_block);
    highest = larger(query >= static_cast<int32_t>(key) ? score : highest, highest);
  }
  Vec sum{};
  for (int64_t key = 0; key < whole; ++key) {
    const Vec p = exp2_fast(load(scores + key * attention_block) - highest);
    store(scores + key * attention_block, p);
    sum += p;
  }
  for (int64_t key = whole; key < end; ++key) {
    Vec p = exp2_fast(load(scores + key * attention_block) - highest);
    p = query >= static_cast<int32_t>(key) ? p : Vec{};
    store(scores + key * attention_block, p);
    sum += p;
  }
  for (int64_t key = end; key < pair.keys; ++key) store(scores + key * attention_block, Vec{});
  const Vec factor = first_keys ? Vec{} : exp2_fast(before - highest);
  store(running.highest + first_lane, highest);
  store(running.factor + first_lane, factor);
  store(running.sum + first_lane, first_keys ? sum : load(running.sum + first_lane) * factor + sum);
}

// sum [queries, padded] = P · rows, P turned.
inline void add_weighted(const Pair& pair, const float* p, const float* rows, int64_t padded, float* sum,
                         Previous previous, const float* factor) {
  for_row_groups(pair.queries, [&](int64_t query, auto group) {
    constexpr int count = decltype(group)::count;
    const TileOperands operands{p + query,
                                attention_block,
                                rows,
                                padded,
                                pair.keys_before(query + count),
                                sum + query * padded,
                                padded,
                                previous,
                                factor == nullptr ? nullptr : factor + query};
    multiply_rows<count, true>(operands, padded / lanes);
  });
}

struct ForwardScratch {
  float* k;  // [keys, padded]
  float* v;
  float* q;         // [attention_block, padded]
  float* q_turned;  // [padded, attention_block]
  float* sum;       // [attention_block, padded]
  float* scores;    // [attention_block, attention_block]
  RunningSoftmax running;
};

inline ForwardScratch forward_scratch(const AttentionShape& shape, float* memory) {
  const int64_t padded = attention_padded(shape.dim);
  const int64_t keys = (shape.past + shape.queries) * padded;
  const int64_t block = attention_block * padded;
  ForwardScratch scratch;
  scratch.k = memory;
  scratch.v = scratch.k + keys;
  scratch.q = scratch.v + keys;
  scratch.q_turned = scratch.q + block;
  scratch.sum = scratch.q_turned + block;
  scratch.scores = scratch.sum + block;
  scratch.running.highest = scratch.scores + attention_block * attention_block;
  scratch.running.sum = scratch.running.highest + attention_block;
  scratch.running.factor = scratch.running.sum + attention_block;
  return scratch;
}

inline void forward_block(const AttentionShape& shape, const AttentionInput& input, int64_t sequence,
                          int64_t head, int64_t block, const ForwardScratch& scratch, Value* output,
                          float* log_sum) {
  const int64_t padded = attention_padded(shape.dim);
  const int64_t width = shape.heads * shape.dim;
  const int64_t first = block * attention_block;
  const int64_t left = shape.queries - first;
  const int64_t queries = left < attention_block ? left : attention_block;
  const int64_t row = sequence * shape.queries + first;
  load_rows(values(input.q) + row * input.q_stride + head * shape.dim, input.q_stride, queries, shape.dim,
            score_scale(shape), scratch.q);
  turn_rows(scratch.q, queries, padded, scratch.q_turned);
  for (int64_t key = 0; key < shape.past + first + queries; key += attention_block) {
    const Pair pair = pair_of(shape.past + first, queries, key);
    turned_scores(pair, scratch.k + key * padded, padded, shape.dim, scratch.q_turned, scratch.scores);
    for (int64_t lane = 0; lane < queries; lane += lanes)
      softmax_lanes(pair, lane, scratch.scores + lane, key == 0, scratch.running);
    add_weighted(pair, scratch.scores, scratch.v + key * padded, padded, scratch.sum,
                 key == 0 ? Previous::Ignored : Previous::Scaled, scratch.running.factor);
  }
  Value* out = output + row * width + head * shape.dim;
  float* log_row = log_sum + (sequence * shape.heads + head) * shape.queries + first;
  for (int64_t i = 0; i < queries; ++i) {
    const float sum = scratch.running.sum[i];
    store_rows(scratch.sum + i * padded, 1, shape.dim, 1.0f / sum, out + i * width, width);
    log_row[i] = scratch.running.highest[i] * log_2 + logf(sum);
  }
}

// Rows of one kv head, unless they are there already.
inline void load_keys(const AttentionShape& shape, const AttentionInput& input, int64_t sequence,
                      int64_t kv_head, float* k, float* v) {
  const int64_t keys = shape.past + shape.queries;
  const int64_t offset = sequence * keys * input.kv_stride + kv_head * shape.dim;
  load_rows(values(input.k) + offset, input.kv_stride, keys, shape.dim, 1.0f, k);
  load_rows(values(input.v) + offset, input.kv_stride, keys, shape.dim, 1.0f, v);
}

// Tasks: (sequence, kv head, part); a part is every parts-th block of queries of the heads that share the
// keys.
inline void attention_forward_blocks(const AttentionShape& shape, const AttentionInput& input, int threads,
                                     float* scratch, Value* output, float* log_sum) {
  const int64_t blocks = (shape.queries + attention_block - 1) / attention_block;
  const int64_t group = shape.heads / shape.kv_heads;
  const int64_t units = group * blocks;
  const int64_t kv_heads = shape.batch * shape.kv_heads;
  int64_t parts = (4 * threads + kv_heads - 1) / kv_heads;
  parts = parts < units ? parts : units;
  const int64_t floats = attention_forward_floats(shape);
#pragma omp parallel num_threads(threads)
  {
    const ForwardScratch own = forward_scratch(shape, scratch + omp_get_thread_num() * floats);
    int64_t loaded = -1;
#pragma omp for schedule(dynamic)
    for (int64_t task = 0; task < kv_heads * parts; ++task) {
      const int64_t kv = task / parts;
      const int64_t sequence = kv / shape.kv_heads;
      const int64_t kv_head = kv % shape.kv_heads;
      if (kv != loaded) load_keys(shape, input, sequence, kv_head, own.k, own.v);
      loaded = kv;
      // The last blocks see the most keys: they come first.
      for (int64_t unit = task % parts; unit < units; unit += parts) {
        forward_block(shape, input, sequence, kv_head * group + unit % group, blocks - 1 - unit / group, own,
                      output, log_sum);
      }
    }
  }
}

}  // namespace
}  // namespace neuroshard::model
