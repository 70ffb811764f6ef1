// The two products of attention over few queries: rows of queries with keys, and weights with values. Keys
// and values are read where they are, a block of keys of all kv heads after the other, as they lie in memory;
// all query rows of a kv head share the block.
#pragma once

#include <immintrin.h>  // NOLINT: see core/model/kernels.h

#include "core/model/detail/row_vectors.h"

namespace neuroshard::model {
namespace {

// Keys of a block: whole vectors of scores in every table, and a kv head's part of it stays in the first
// cache.
constexpr int64_t few_keys = 16;
// Rows that share the loads of a key or value.
constexpr int few_rows = 4;

// The operand of one multiplication instruction: a vector of fp32 values, or of bf16 pairs.
#ifdef NS_KERNEL_BFLOAT16
typedef __m512bh Factors;
constexpr int64_t factors = 32;
inline Factors load_factors(const Bf16* from, Whole) {
  return reinterpret_cast<Factors>(_mm512_loadu_si512(from));
}
inline Factors load_factors(const Bf16* from, Part part) {
  const __mmask32 mask = (1u << part.count) - 1u;
  return reinterpret_cast<Factors>(_mm512_maskz_loadu_epi16(mask, from));
}
inline Vec add_products(Vec sum, Factors a, Factors b) {
  return (Vec)_mm512_dpbf16_ps((__m512)sum, a, b);
}
inline Vec load_value(const Bf16* from, Whole) {
  return load(from, Whole());
}
inline Vec load_value(const Bf16* from, Part part) {
  const __mmask16 mask = static_cast<__mmask16>((1u << part.count) - 1u);
  return (Vec)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from)), 16);
}
#else
typedef Vec Factors;
constexpr int64_t factors = lanes;
inline Vec load_value(const float* from, Whole) {
  return load(from);
}
inline Vec load_value(const float* from, Part part) {
#if defined(__AVX512F__)
  return (Vec)_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << part.count) - 1u), from);
#elif defined(__AVX2__)
  const IntVec inside = lane_numbers() < static_cast<int32_t>(part.count);
  return (Vec)_mm256_maskload_ps(from, (__m256i)inside);
#else
  return load(from, part);
#endif
}
template <typename Extent>
inline Factors load_factors(const float* from, Extent extent) {
  return load_value(from, extent);
}
inline Vec add_products(Vec sum, Factors a, Factors b) {
  return sum + a * b;
}
#endif

inline int64_t whole_factors(int64_t dim) {
  return (dim + factors - 1) / factors * factors;
}

// Rows of keys or values of one kv head.
struct KvRows {
  const Value* first;
  int64_t stride;
};

// Asks for the line that is needed later. It may lie behind the end: that is no access. Always inline,
// because GCC takes a function that only asks for one without effect and drops calls of it.
__attribute__((always_inline)) inline void prefetch(const Value* at, int64_t ahead) {
  _mm_prefetch(reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(at) +
                                             static_cast<uintptr_t>(ahead) * sizeof(Value)),
               _MM_HINT_T0);
}

// Lane i: a[i] + a[i ^ distance] where i has no bit `distance`, and else the same of b.
template <int distance>
inline Vec fold(Vec a, Vec b) {
  IntVec stay;
  IntVec move;
  for (int i = 0; i < lanes; ++i) {
    const int of_b = (i & distance) != 0 ? lanes : 0;
    stay[i] = i + of_b;
    move[i] = (i ^ distance) + of_b;
  }
  return __builtin_shuffle(a, b, stay) + __builtin_shuffle(a, b, move);
}

// Folds `count` vectors into one; the distance is halved each time, and so is the number of vectors. With all
// vectors of a block, lane i ends as the sum over vector i.
template <int count, int distance>
inline Vec fold_all(Vec* parts) {
  if constexpr (count == 1) {
    return parts[0];
  } else {
#pragma GCC unroll 8
    for (int i = 0; i < count / 2; ++i) parts[i] = fold<distance>(parts[i], parts[i + count / 2]);
    return fold_all<count / 2, distance / 2>(parts);
  }
}

// Products of `rows` queries with `lanes` keys, at scores[row][key]. Queries stand `pitch` apart, padded with
// zeros. A tile of keys is as large as leaves registers for its sums.
template <int rows>
inline void few_dots(const Value* q, int64_t pitch, const KvRows& k, int64_t dim, int64_t ahead, float scale,
                     float* scores, int64_t scores_stride) {
  constexpr int wanted = (lanes == 16 ? 16 : 8) / (rows == 1 ? 1 : rows == 2 ? 2 : 4);
  constexpr int keys = wanted < lanes ? wanted : lanes;
  constexpr int tiles = lanes / keys;
  Vec parts[rows][tiles];
#pragma GCC unroll 1
  for (int tile = 0; tile < tiles; ++tile) {
    const Value* first = k.first + tile * k.stride;
    const int64_t step = tiles * k.stride;
    Vec sums[rows][keys] = {};
    const auto add = [&](int64_t d, auto extent) __attribute__((always_inline)) {
      Factors query[rows];
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) query[r] = load_factors(q + r * pitch + d, Whole());
#pragma GCC unroll 16
      for (int j = 0; j < keys; ++j) {
        const Value* at = first + j * step + d;
        prefetch(at, ahead);
        const Factors key = load_factors(at, extent);
#pragma GCC unroll 4
        for (int r = 0; r < rows; ++r) sums[r][j] = add_products(sums[r][j], query[r], key);
      }
    };
    int64_t d = 0;
    for (; d + factors <= dim; d += factors) add(d, Whole());
    if (d < dim) add(d, Part{dim - d});
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) parts[r][tile] = fold_all<keys, lanes / 2>(sums[r]);
  }
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r)
    store(scores + r * scores_stride, fold_all<tiles, tiles / 2>(parts[r]) * scale);
}

// sum[row] += Σ p[row][key] · v[key] for `keys` keys, for the vectors from d on.
template <int rows, int vectors, typename Extent>
inline void few_sums(const float* p, int64_t p_stride, const KvRows& v, int64_t keys, int64_t d,
                     Extent extent, int64_t ahead, float* sum, int64_t sum_stride) {
  Vec sums[rows][vectors];
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (int i = 0; i < vectors; ++i) sums[r][i] = load(sum + r * sum_stride + d + i * lanes);
  }
  for (int64_t key = 0; key < keys; ++key) {
    const Value* at = v.first + key * v.stride + d;
    Vec weight[rows];
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) weight[r] = all(p[r * p_stride + key]);
#pragma GCC unroll 8
    for (int i = 0; i < vectors; ++i) {
      prefetch(at + i * lanes, ahead);
      const Vec value = load_value(at + i * lanes, extent);
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) sums[r][i] += value * weight[r];
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (int i = 0; i < vectors; ++i) store(sum + r * sum_stride + d + i * lanes, sums[r][i]);
  }
}

template <int rows>
inline void few_weighted(const float* p, int64_t p_stride, const KvRows& v, int64_t keys, int64_t dim,
                         int64_t ahead, float* sum, int64_t sum_stride) {
  constexpr int vectors = lanes == 16 ? (rows == 1 ? 8 : 4) : (rows == 1 ? 8 : rows == 2 ? 4 : 2);
  int64_t d = 0;
  for (; d + vectors * lanes <= dim; d += vectors * lanes)
    few_sums<rows, vectors>(p, p_stride, v, keys, d, Whole(), ahead, sum, sum_stride);
  for (; d + 4 * lanes <= dim && vectors > 4; d += 4 * lanes)
    few_sums<rows, 4>(p, p_stride, v, keys, d, Whole(), ahead, sum, sum_stride);
  for (; d + lanes <= dim; d += lanes)
    few_sums<rows, 1>(p, p_stride, v, keys, d, Whole(), ahead, sum, sum_stride);
  if (d < dim) few_sums<rows, 1>(p, p_stride, v, keys, d, Part{dim - d}, ahead, sum, sum_stride);
}

// body(row, rows as a constant): all of [first, end) in groups of up to few_rows.
template <int rows>
struct RowCount {
  static constexpr int value = rows;
};
template <typename Body>
inline void for_row_groups(int64_t first, int64_t end, const Body& body) {
  int64_t row = first;
  for (; row + few_rows <= end; row += few_rows) body(row, RowCount<few_rows>());
  switch (end - row) {
    case 1: body(row, RowCount<1>()); break;
    case 2: body(row, RowCount<2>()); break;
    case 3: body(row, RowCount<3>()); break;
    default: break;
  }
}

}  // namespace
}  // namespace neuroshard::model
