// Vectors of the width that the including unit is compiled for, by the compiler's vector types: one source
// for all instruction sets. Only what every set computes with the same bits; a product of two widened floats
// is exact in fp64, so adding it fused or not is the same.
#pragma once

#include <cstddef>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace neuroshard::outer::detail {
namespace {  // each unit has its own, in its own instruction set

#if defined(__AVX512F__)
constexpr std::size_t vector_bytes = 64;
#elif defined(__AVX2__)
constexpr std::size_t vector_bytes = 32;
#else
constexpr std::size_t vector_bytes = 16;
#endif
constexpr std::size_t floats = vector_bytes / sizeof(float);    // in a vector
constexpr std::size_t doubles = vector_bytes / sizeof(double);  // in a vector

typedef float VF __attribute__((vector_size(vector_bytes)));
typedef double VD __attribute__((vector_size(vector_bytes)));

#define NS_INLINE [[gnu::always_inline]] inline

NS_INLINE VF load(const float* from) {
  VF v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}
NS_INLINE VD load(const double* from) {
  VD v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}
NS_INLINE void store(float* to, VF v) {
  __builtin_memcpy(to, &v, sizeof v);
}
NS_INLINE void store(double* to, VD v) {
  __builtin_memcpy(to, &v, sizeof v);
}

// `doubles` floats, widened.
NS_INLINE VD load_widened(const float* from) {
#if defined(__AVX512F__)
  return (VD)_mm512_cvtps_pd(_mm256_loadu_ps(from));
#elif defined(__AVX2__)
  return (VD)_mm256_cvtps_pd(_mm_loadu_ps(from));
#elif defined(__SSE2__)
  return (VD)_mm_cvtps_pd(_mm_castsi128_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
#else
  VD v;
  for (std::size_t i = 0; i < doubles; ++i) v[i] = from[i];
  return v;
#endif
}

// Rounds to the nearest float and stores `doubles` of them.
NS_INLINE void store_narrowed(float* to, VD v) {
#if defined(__AVX512F__)
  _mm256_storeu_ps(to, _mm512_cvtpd_ps((__m512d)v));
#elif defined(__AVX2__)
  _mm_storeu_ps(to, _mm256_cvtpd_ps((__m256d)v));
#elif defined(__SSE2__)
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_castps_si128(_mm_cvtpd_ps((__m128d)v)));
#else
  for (std::size_t i = 0; i < doubles; ++i) to[i] = static_cast<float>(v[i]);
#endif
}

// The lower and the upper `doubles` values of a vector of floats.
NS_INLINE VD widen_low(VF v) {
#if defined(__AVX512F__)
  return (VD)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)v));
#elif defined(__AVX2__)
  return (VD)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)v));
#elif defined(__SSE2__)
  return (VD)_mm_cvtps_pd((__m128)v);
#else
  VD w;
  for (std::size_t i = 0; i < doubles; ++i) w[i] = v[i];
  return w;
#endif
}
NS_INLINE VD widen_high(VF v) {
#if defined(__AVX512F__)
  return (VD)_mm512_cvtps_pd(_mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd((__m512)v), 1)));
#elif defined(__AVX2__)
  return (VD)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)v, 1));
#elif defined(__SSE2__)
  return (VD)_mm_cvtps_pd(_mm_movehl_ps((__m128)v, (__m128)v));
#else
  VD w;
  for (std::size_t i = 0; i < doubles; ++i) w[i] = v[doubles + i];
  return w;
#endif
}

// sum + a·b where the product is exact.
NS_INLINE VD add_exact_product(VD sum, VD a, VD b) {
#if defined(__AVX512F__)
  return (VD)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)sum);
#elif defined(__FMA__)
  return (VD)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)sum);
#else
  return sum + a * b;
#endif
}

// a < b ? a : b and a < b ? b : a for each lane, whatever the lanes hold: together they neither lose nor
// double a NaN. (GCC makes a comparison and a blend of the conditional.)
NS_INLINE VF smaller(VF a, VF b) {
#if defined(__AVX512F__)
  return (VF)_mm512_min_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
  return (VF)_mm256_min_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__)
  return (VF)_mm_min_ps((__m128)a, (__m128)b);
#else
  return a < b ? a : b;
#endif
}
NS_INLINE VF larger(VF a, VF b) {
#if defined(__AVX512F__)
  return (VF)_mm512_max_ps((__m512)b, (__m512)a);
#elif defined(__AVX2__)
  return (VF)_mm256_max_ps((__m256)b, (__m256)a);
#elif defined(__SSE2__)
  return (VF)_mm_max_ps((__m128)b, (__m128)a);
#else
  return a < b ? b : a;
#endif
}

// bad + v·0: NaN for what is not finite, else still a zero. The product is exact.
NS_INLINE VF add_unless_finite(VF bad, VF v) {
#if defined(__AVX512F__)
  return (VF)_mm512_fmadd_ps((__m512)v, _mm512_setzero_ps(), (__m512)bad);
#elif defined(__FMA__)
  return (VF)_mm256_fmadd_ps((__m256)v, _mm256_setzero_ps(), (__m256)bad);
#else
  return bad + v * 0.0f;
#endif
}

// Whether all are 0; a NaN is not.
NS_INLINE bool all_zero(VF v) {
  float values[floats];
  store(values, v);
  bool zero = true;
  for (std::size_t i = 0; i < floats; ++i) zero = zero && values[i] == 0;
  return zero;
}

}  // namespace
}  // namespace neuroshard::outer::detail
