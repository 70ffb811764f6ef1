// A row of fp32 or bf16 values as vectors, its last and shorter one included, and what SwiGLU and
// cross-entropy compute on them. Every element takes the same instructions wherever it stands, so results do
// not depend on how work is cut.
#pragma once

#include "core/model/detail/common.h"
#include "core/model/detail/vectors.h"

#if defined(__AVX512F__)
#include <immintrin.h>  // NOLINT: see core/model/kernels.h
#endif

namespace neuroshard::model {
namespace {

// How many of a vector's elements are in the row.
struct Whole {};
struct Part {
  int64_t count;
};

// body(first element, Whole or Part)
template <typename Body>
inline void for_vectors(int64_t width, const Body& body) {
  int64_t i = 0;
  for (; i + lanes <= width; i += lanes) body(i, Whole());
  if (i < width) body(i, Part{width - i});
}

inline Vec load(const float* from, Whole, float /*fill*/ = 0) {
  return load(from);
}
inline void store(float* to, Vec value, Whole) {
  store(to, value);
}

// Missing values of a part are `fill`.
inline Vec load(const float* from, Part part, float fill = 0) {
  Vec value = all(fill);
  memcpy(&value, from, static_cast<size_t>(part.count) * sizeof(float));
  return value;
}
inline void store(float* to, Vec value, Part part) {
  memcpy(to, &value, static_cast<size_t>(part.count) * sizeof(float));
}

#ifdef NS_KERNEL_BFLOAT16
inline Vec load(const Bf16* from, Whole) {
  const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return (Vec)_mm512_slli_epi32(_mm512_cvtepu16_epi32(words), 16);
}
// The instruction rounds as put() does, but takes subnormal numbers for 0.
inline void store(Bf16* to, Vec value, Whole) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), (__m256i)_mm512_cvtneps_pbh((__m512)value));
}
inline Vec load(const Bf16* from, Part part) {
  Bf16 words[lanes] = {};
  memcpy(words, from, static_cast<size_t>(part.count) * sizeof(Bf16));
  return load(words, Whole());
}
inline void store(Bf16* to, Vec value, Part part) {
  Bf16 words[lanes];
  store(words, value, Whole());
  memcpy(to, words, static_cast<size_t>(part.count) * sizeof(Bf16));
}
#endif

// b where one of them is not a number.
inline Vec smaller(Vec a, Vec b) {
  return a < b ? a : b;
}

// p · 2^n for whole n; rounded holds n in its lowest bits.
inline Vec times_power(Vec p, [[maybe_unused]] Vec n, [[maybe_unused]] Vec rounded) {
#if defined(__AVX512F__)
  return (Vec)_mm512_scalef_ps((__m512)p, (__m512)n);
#else
  return p * (Vec)(((IntVec)rounded + 127) << 23);
#endif
}

constexpr float to_whole = 12582912.0f;  // 1.5 · 2^23: adding it rounds to whole numbers
constexpr float log2_of_e = 1.44269504088896341f;

// exp(x) to about 2 units in the last place: 2^n · polynomial on [−ln2/2, ln2/2], whose largest relative
// error (3e-9) is the least possible for its degree. Saturates at e^±87 instead of overflowing; NaN stays
// NaN.
inline Vec exp_fast(Vec x) {
  x = smaller(all(88.0f), larger(all(-87.0f), x));
  const Vec rounded = x * log2_of_e + to_whole;
  const Vec n = rounded - to_whole;
  Vec r = x - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  Vec p = all(1.381461326e-3f);
  p = p * r + 8.368709824e-3f;
  p = p * r + 4.166838736e-2f;
  p = p * r + 1.666652069e-1f;
  p = p * r + 4.999999345e-1f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  return times_power(p, n, rounded);
}

// The same to 4e-6, for results that are rounded to activations: in fp32 that is not enough.
inline Vec exp_of_activation(Vec x) {
  if (table_element == Element::Float) return exp_fast(x);
  x = smaller(all(88.0f), larger(all(-87.0f), x));
  const Vec rounded = x * log2_of_e + to_whole;
  const Vec n = rounded - to_whole;
  const Vec r = x * log2_of_e - n;
  Vec p = all(9.782912638e-3f);
  p = p * r + 5.597688363e-2f;
  p = p * r + 2.402071108e-1f;
  p = p * r + 6.931136044e-1f;
  p = p * r + 1.0f;
  return times_power(p, n, rounded);
}

// 1/x to 2 units in the last place for finite x.
inline Vec reciprocal(Vec x) {
#if defined(__AVX512F__)
  const Vec guess = (Vec)_mm512_rcp14_ps((__m512)x);
  return guess + guess * (1.0f - x * guess);
#else
  return 1.0f / x;
#endif
}

inline Vec sigmoid(Vec x) {
  return reciprocal(1.0f + exp_of_activation(-x));
}

// Four sums or maxima at a time, because each would wait for its own last addition.
inline float dot(const float* a, const float* b, int64_t n) {
  Vec sums[4] = {};
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) sums[k] += load(a + i + k * lanes) * load(b + i + k * lanes);
  }
  for_vectors(n - i, [&](int64_t j, auto part) { sums[0] += load(a + i + j, part) * load(b + i + j, part); });
  return sum_of((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

// The largest of n > 0 values that are numbers.
inline float largest(const float* values, int64_t n) {
  Vec found[4];
  for (Vec& each : found) each = all(-FLT_MAX);
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) found[k] = larger(load(values + i + k * lanes), found[k]);
  }
  for (; i < n; ++i) found[0] = larger(all(values[i]), found[0]);
  const Vec both = larger(larger(found[0], found[1]), larger(found[2], found[3]));
  float result = both[0];
  for (int k = 1; k < lanes; ++k) result = both[k] > result ? both[k] : result;
  return result;
}

}  // namespace
}  // namespace neuroshard::model
