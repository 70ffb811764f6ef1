// Attention's forward pass over blocks of queries and keys with a running softmax (Dao et al. 2022). Scores
// are kept turned, [keys, queries], so that the softmax of a query runs down one lane of a vector.
#pragma once

#include "core/model/detail/attention_panels.h"
#include "core/model/detail/attention_tiles.h"

namespace neuroshard::model {
namespace {

// scores [keys, attention_block] = rows · turned, for the vectors that hold a visible score. stride: of rows.
template <class Arithmetic>
inline void turned_scores(const Pair& pair, const float* rows, int64_t stride, int64_t dim,
                          const float* turned, float* scores) {
  for_row_groups(pair.keys, [&](int64_t key, auto group) {
    const int64_t skipped = pair.first_query(key) / lanes;
    if (skipped >= pair.vectors()) return;
    const TileOperands operands{rows + key * stride,
                                stride,
                                turned + skipped * lanes,
                                attention_block,
                                Arithmetic::steps(dim),
                                scores + key * attention_block + skipped * lanes,
                                attention_block,
                                Previous::Ignored,
                                nullptr};
    multiply_rows<Arithmetic, decltype(group)::count, false>(operands, pair.vectors() - skipped);
  });
}

// Running state of the softmax, per query of a block.
struct RunningSoftmax {
  float* highest;  // scale · score
  float* sum;      // of 2^(scale · score − highest)
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

// Scores of one vector of queries → 2^(scale · score − highest), zero where masked.
inline void softmax_lanes(const Pair& pair, int64_t first_lane, float scale, float* scores, bool first_keys,
                          const RunningSoftmax& running) {
  const IntVec query = lane_numbers() + static_cast<int32_t>(first_lane + pair.diagonal);
  // Every key before `whole` is seen by all lanes, none from `end` on by any.
  const int64_t whole = pair.keys_before(first_lane + 1);
  const int64_t end = pair.keys_before(first_lane + lanes);
  Vec highest = all(-INFINITY);
  for (int64_t key = 0; key < whole; ++key) highest = larger(load(scores + key * attention_block), highest);
  for (int64_t key = whole; key < end; ++key) {
    const Vec score = load(scores + key * attention_block);
    highest = larger(query >= static_cast<int32_t>(key) ? score : highest, highest);
  }
  const Vec before = first_keys ? Vec{} : load(running.highest + first_lane);
  highest = highest * scale;
  if (!first_keys) highest = larger(highest, before);
  Vec sum{};
  for (int64_t key = 0; key < whole; ++key) {
    const Vec p = exp2_fast(load(scores + key * attention_block) * scale - highest);
    store(scores + key * attention_block, p);
    sum += p;
  }
  for (int64_t key = whole; key < end; ++key) {
    Vec p = exp2_fast(load(scores + key * attention_block) * scale - highest);
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
template <class Arithmetic>
inline void add_weighted(const Pair& pair, const float* p, const float* rows, int64_t padded, float* sum,
                         Previous previous, const float* factor) {
  for_row_groups(pair.queries, [&](int64_t query, auto group) {
    constexpr int count = decltype(group)::count;
    const TileOperands operands{p + query,
                                attention_block,
                                rows,
                                padded,
                                Arithmetic::steps(pair.keys_before(query + count)),
                                sum + query * padded,
                                padded,
                                previous,
                                factor == nullptr ? nullptr : factor + query};
    multiply_rows<Arithmetic, count, true>(operands, padded / lanes);
  });
}

// Scratch memory of one thread. Operands may be fp32 or pairs of bf16, which need half of the room.
struct ForwardScratch {
  float* k;  // [keys, padded]
  float* v;
  float* q;         // [attention_block, padded]
  float* q_turned;  // [padded, attention_block]
  float* sum;       // [attention_block, padded]
  float* scores;    // [attention_block, attention_block]
  float* p;         // the same for pairs, if the table has them
  RunningSoftmax running;
};

inline ForwardScratch forward_scratch(const AttentionShape& shape, float* memory) {
  const int64_t padded = attention_padded(shape.dim);
  const int64_t keys = attention_even(shape.past + shape.queries) * padded;
  const int64_t block = attention_block * padded;
  ForwardScratch scratch;
  scratch.k = memory;
  scratch.v = scratch.k + keys;
  scratch.q = scratch.v + keys;
  scratch.q_turned = scratch.q + block;
  scratch.sum = scratch.q_turned + block;
  scratch.scores = scratch.sum + block;
  scratch.p = scratch.scores + attention_block * attention_block;
  scratch.running.highest = scratch.p + attention_block * attention_block / 2;
  scratch.running.sum = scratch.running.highest + attention_block;
  scratch.running.factor = scratch.running.sum + attention_block;
  return scratch;
}

// How operands are laid out for a product. Single values: fp32, as they are.
struct SingleOperands {
  using Arithmetic = Single;
  static constexpr bool separate = false;  // whether first and second operands differ
  static int64_t stride(int64_t values) { return values; }

  // Keys or values as the first operand of the scores.
  static void load_first(const Value* source, int64_t stride, int64_t rows, int64_t dim, float* target) {
    load_rows(source, stride, rows, dim, target);
  }
  // Rows as the second operand of a product that runs over rows.
  static void load_second(const Value* source, int64_t stride, int64_t rows, int64_t dim, float* target) {
    load_rows(source, stride, rows, dim, target);
  }
  // Queries as the second operand of the scores.
  static void load_turned(const Value* source, int64_t stride, int64_t rows, int64_t dim, float* scratch,
                          float* target) {
    load_rows(source, stride, rows, dim, scratch);
    turn_rows(scratch, rows, attention_padded(dim), target);
  }
  // Scores [keys, attention_block] as the first operand of a product over keys, and over queries.
  static const float* over_keys(const Pair&, const float* scores, float*) { return scores; }
  static const float* over_queries(const Pair&, const float* scores, float*) { return scores; }
};

template <class Operands>
inline void forward_block(const AttentionShape& shape, const AttentionInput& input, int64_t sequence,
                          int64_t head, int64_t block, const ForwardScratch& scratch, Value* output,
                          float* log_sum) {
  using Arithmetic = typename Operands::Arithmetic;
  const int64_t padded = attention_padded(shape.dim);
  const int64_t width = shape.heads * shape.dim;
  const int64_t first = block * attention_block;
  const int64_t left = shape.queries - first;
  const int64_t queries = left < attention_block ? left : attention_block;
  const int64_t row = sequence * shape.queries + first;
  Operands::load_turned(values(input.q) + row * input.q_stride + head * shape.dim, input.q_stride, queries,
                        shape.dim, scratch.q, scratch.q_turned);
  for (int64_t key = 0; key < shape.past + first + queries; key += attention_block) {
    const Pair pair = pair_of(shape.past + first, queries, key);
    const int64_t at = key * Operands::stride(padded);
    turned_scores<Arithmetic>(pair, scratch.k + at, Operands::stride(padded), shape.dim, scratch.q_turned,
                              scratch.scores);
    for (int64_t lane = 0; lane < queries; lane += lanes)
      softmax_lanes(pair, lane, score_scale(shape), scratch.scores + lane, key == 0, scratch.running);
    const float* p = Operands::over_keys(pair, scratch.scores, scratch.p);
    add_weighted<Arithmetic>(pair, p, scratch.v + at, padded, scratch.sum,
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

// Tasks: (sequence, kv head, part); a part is every parts-th block of queries of the heads that share the
// keys.
template <class Operands>
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
      const int64_t keys = shape.past + shape.queries;
      const int64_t at = sequence * keys * input.kv_stride + kv_head * shape.dim;
      if (kv != loaded) {
        Operands::load_first(values(input.k) + at, input.kv_stride, keys, shape.dim, own.k);
        Operands::load_second(values(input.v) + at, input.kv_stride, keys, shape.dim, own.v);
      }
      loaded = kv;
      // The last blocks see the most keys: they come first.
      for (int64_t unit = task % parts; unit < units; unit += parts) {
        forward_block<Operands>(shape, input, sequence, kv_head * group + unit % group,
                                blocks - 1 - unit / group, own, output, log_sum);
      }
    }
  }
}

}  // namespace
}  // namespace neuroshard::model
