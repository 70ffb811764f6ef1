// Copies of a head's rows for the products of attention: fp32, side by side, columns padded with zeros.
#pragma once

#include <omp.h>  // NOLINT

#include "core/model/attention_shape.h"
#include "core/model/detail/common.h"
#include "core/model/detail/vectors.h"

namespace neuroshard::model {
namespace {

// The base-2 logarithm of e, and its inverse: scores are scaled so that exp becomes 2^x.
constexpr float log2_e = 1.44269504088896341f;
constexpr float log_2 = 0.693147180559945309f;

inline float score_scale(const AttentionShape& shape) {
  return log2_e / sqrtf(static_cast<float>(shape.dim));
}

// target [rows, padded] = source
inline void load_rows(const Value* source, int64_t stride, int64_t rows, int64_t dim, float* target) {
  const int64_t padded = attention_padded(dim);
  for (int64_t r = 0; r < rows; ++r) {
    const Value* from = source + r * stride;
    float* to = target + r * padded;
#pragma omp simd
    for (int64_t i = 0; i < dim; ++i) to[i] = widened(from[i]);
    for (int64_t i = dim; i < padded; ++i) to[i] = 0;
  }
}

// source [rows, dim] · scale → target
inline void store_rows(const float* source, int64_t rows, int64_t dim, float scale, Value* target,
                       int64_t stride) {
  const int64_t padded = attention_padded(dim);
  for (int64_t r = 0; r < rows; ++r) {
    const float* from = source + r * padded;
    Value* to = target + r * stride;
#pragma omp simd
    for (int64_t i = 0; i < dim; ++i) put(to[i], from[i] * scale);
  }
}

// target [padded, attention_block] = the transposed of source [rows, padded]; source has room for whole
// vectors of rows, and zeros there.
inline void turn_rows(float* source, int64_t rows, int64_t padded, float* target) {
  const int64_t whole = (rows + lanes - 1) / lanes * lanes;
  memset(source + rows * padded, 0, sizeof(float) * (whole - rows) * padded);
  for (int64_t r = 0; r < whole; r += lanes) {
    for (int64_t i = 0; i < padded; i += lanes)
      transpose_square(source + r * padded + i, padded, target + i * attention_block + r, attention_block);
  }
}

// One block of queries against one block of keys.
struct Pair {
  int64_t first_key = 0;
  int64_t keys = 0;
  int64_t queries = 0;
  int64_t diagonal = 0;  // query i sees the block's keys up to i + diagonal, none if negative

  int64_t vectors() const { return (queries + lanes - 1) / lanes; }
  // The first query that sees key j.
  int64_t first_query(int64_t key) const { return key > diagonal ? key - diagonal : 0; }
  // Keys that one of the queries before `end` sees.
  int64_t keys_before(int64_t end) const {
    const int64_t seen = end + diagonal;
    return seen < 0 ? 0 : seen < keys ? seen : keys;
  }
};

inline Pair pair_of(int64_t first_query, int64_t queries, int64_t first_key) {
  const int64_t seen = first_query + queries - first_key;  // positions, counted from the first key
  return {first_key, seen < attention_block ? seen : attention_block, queries, first_query - first_key};
}

}  // namespace
}  // namespace neuroshard::model
