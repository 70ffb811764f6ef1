// Small things that the codecs' AVX2 units share. Only those include it: whatever is in here has their
// instruction set, so it has internal linkage, as the C headers' functions have.
#pragma once

#include <immintrin.h>
#include <string.h>  // NOLINT: see codec_kernels.h

#include "core/outer/detail/codec_kernels.h"

namespace neuroshard::outer::detail {
namespace {

inline __m256i load(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
inline void store(void* to, __m256i value) {
  _mm256_storeu_si256(static_cast<__m256i*>(to), value);
}
inline __m256i mask_of_magnitude() {
  return _mm256_set1_epi32(static_cast<int>(magnitude_mask));
}
inline uint32_t magnitude(const float* value) {
  uint32_t bits;
  memcpy(&bits, value, sizeof bits);
  return bits & magnitude_mask;
}

inline uint32_t largest_lane(__m256i value) {
  __m128i half = _mm_max_epu32(_mm256_castsi256_si128(value), _mm256_extracti128_si256(value, 1));
  half = _mm_max_epu32(half, _mm_shuffle_epi32(half, 0x4e));
  half = _mm_max_epu32(half, _mm_shuffle_epi32(half, 0xb1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(half));
}
inline uint32_t sum_of_lanes(__m256i value) {
  __m128i half = _mm_add_epi32(_mm256_castsi256_si128(value), _mm256_extracti128_si256(value, 1));
  half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0x4e));
  half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0xb1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(half));
}

}  // namespace
}  // namespace neuroshard::outer::detail
