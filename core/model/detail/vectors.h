// Vectors of the table's instruction set, written with the compiler's vector types so that one source serves
// all.
#pragma once

#include <immintrin.h>  // NOLINT: see core/model/kernels.h
#include <string.h>     // NOLINT

#include "core/model/kernels.h"

namespace neuroshard::model {
namespace {

#if defined(__AVX512F__)
constexpr int lanes = 16;
#elif defined(__AVX2__)
constexpr int lanes = 8;
#else
constexpr int lanes = 4;
#endif

typedef float Vec __attribute__((vector_size(lanes * 4)));
typedef int32_t IntVec __attribute__((vector_size(lanes * 4)));

inline Vec load(const float* from) {
  Vec value;
  memcpy(&value, from, sizeof value);
  return value;
}
inline void store(float* to, Vec value) {
  memcpy(to, &value, sizeof value);
}
inline Vec all(float value) {
  return Vec{} + value;
}
inline IntVec lane_numbers() {
  IntVec numbers;
  for (int i = 0; i < lanes; ++i) numbers[i] = i;
  return numbers;
}
// b where one of them is not a number.
inline Vec larger(Vec a, Vec b) {
#if defined(__AVX512F__)
  return (Vec)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
  return (Vec)_mm256_max_ps((__m256)a, (__m256)b);
#else
  return (Vec)_mm_max_ps((__m128)a, (__m128)b);
#endif
}
// In halves, so that few additions wait for each other.
inline float sum_of(Vec value) {
#pragma GCC unroll 4
  for (int distance = lanes / 2; distance > 0; distance /= 2)
    value += __builtin_shuffle(value, lane_numbers() + distance);
  return value[0];
}

// The largest element that is a number; −infinity if none is.
inline float largest_of(Vec value) {
#pragma GCC unroll 4
  for (int distance = lanes / 2; distance > 0; distance /= 2)
    value = larger(__builtin_shuffle(value, lane_numbers() + distance), value);
  return value[0];
}

// 2^x to about 2 units in the last place for x ≤ 127; below −125 it stays there instead of vanishing. NaN
// stays. The polynomial has the least relative error on [−1/2, 1/2] (7.5e-8), up to the rounding of its first
// term.
inline Vec exp2_fast(Vec x) {
  const Vec rounding = all(12582912.0f);  // 1.5 · 2^23: adding it rounds to whole numbers
  x = larger(all(-125.0f), x);
  const Vec shifted = x + rounding;
  const Vec n = shifted - rounding;
  const Vec r = x - n;
  Vec p = all(1.327647198e-3f);
  p = p * r + 9.675541334e-3f;
  p = p * r + 5.550713274e-2f;
  p = p * r + 2.402211972e-1f;
  p = p * r + 6.931469671e-1f;
  p = p * r + 1.0f;
#if defined(__AVX512F__)
  return (Vec)_mm512_scalef_ps((__m512)p, (__m512)n);
#else
  return p * (Vec)(((IntVec)shifted + 127) << 23);
#endif
}

// The two halves of a and b, element by element in turn: a0 b0 a1 b1 …
inline Vec mix_low(Vec a, Vec b) {
  IntVec order;
  for (int i = 0; i < lanes; ++i) order[i] = i / 2 + (i % 2) * lanes;
  return __builtin_shuffle(a, b, order);
}
inline Vec mix_high(Vec a, Vec b) {
  IntVec order;
  for (int i = 0; i < lanes; ++i) order[i] = lanes / 2 + i / 2 + (i % 2) * lanes;
  return __builtin_shuffle(a, b, order);
}

// target [lanes, lanes] = sourceᵀ. Each round halves the distance between elements that end up side by side.
inline void transpose_square(const float* source, int64_t source_stride, float* target,
                             int64_t target_stride) {
  Vec rows[lanes];
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i) rows[i] = load(source + i * source_stride);
#pragma GCC unroll 4
  for (int round = 1; round < lanes; round *= 2) {
    Vec next[lanes];
#pragma GCC unroll 8
    for (int i = 0; i < lanes / 2; ++i) {
      next[2 * i] = mix_low(rows[i], rows[i + lanes / 2]);
      next[2 * i + 1] = mix_high(rows[i], rows[i + lanes / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < lanes; ++i) rows[i] = next[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i) store(target + i * target_stride, rows[i]);
}

}  // namespace
}  // namespace neuroshard::model
