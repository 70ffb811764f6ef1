// The codecs' loops for AVX2 with F16C, BMI1 and POPCNT (any processor with AVX2 that we know of).
#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>  // NOLINT: see codec_kernels.h

#include "core/outer/detail/codec_kernels.h"
#include "core/outer/detail/codec_lanes_avx2.h"
#include "core/outer/detail/top_k_select_avx2.h"

namespace neuroshard::outer::detail {
namespace {

uint32_t crc32c(uint32_t crc, const uint8_t* bytes, size_t count) {
  uint64_t state = ~crc;
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    uint64_t word;
    memcpy(&word, bytes + i, sizeof word);
    state = _mm_crc32_u64(state, word);
  }
  uint32_t rest = static_cast<uint32_t>(state);
  for (; i < count; ++i) rest = _mm_crc32_u8(rest, bytes[i]);
  return ~rest;
}

uint32_t largest(const float* values, size_t count) {
  __m256i most[4] = {};
  const __m256i mask = mask_of_magnitude();
  size_t i = 0;
  for (; i + 32 <= count; i += 32) {
    for (int part = 0; part < 4; ++part)
      most[part] = _mm256_max_epu32(most[part], _mm256_and_si256(load(values + i + 8 * part), mask));
  }
  uint32_t result =
      largest_lane(_mm256_max_epu32(_mm256_max_epu32(most[0], most[1]), _mm256_max_epu32(most[2], most[3])));
  for (; i < count; ++i) {
    const uint32_t bits = magnitude(values + i);
    if (bits > result) result = bits;
  }
  return result;
}

// ---- half precision

void to_fp16(const float* values, size_t count, float scale, uint8_t* out) {
  const __m256 factor = _mm256_set1_ps(scale);
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(values + i), factor);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 2 * i),
                     _mm256_cvtps_ph(scaled, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  if (i == count) return;
  float rest[8] = {};
  memcpy(rest, values + i, (count - i) * sizeof(float));
  const __m128i halves = _mm256_cvtps_ph(_mm256_mul_ps(_mm256_loadu_ps(rest), factor),
                                         _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  memcpy(out + 2 * i, &halves, 2 * (count - i));
}

void from_fp16(const uint8_t* in, size_t count, float scale, float* out) {
  const __m256 factor = _mm256_set1_ps(scale);
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + 2 * i));
    _mm256_storeu_ps(out + i, _mm256_mul_ps(_mm256_cvtph_ps(halves), factor));
  }
  if (i == count) return;
  __m128i halves = _mm_setzero_si128();
  memcpy(&halves, in + 2 * i, 2 * (count - i));
  const __m256 rest = _mm256_mul_ps(_mm256_cvtph_ps(halves), factor);
  memcpy(out + i, &rest, (count - i) * sizeof(float));
}

uint32_t largest_fp16(const uint8_t* in, size_t count) {
  __m256i most = _mm256_setzero_si256();
  const __m256i mask = _mm256_set1_epi16(0x7fff);
  size_t i = 0;
  for (; i + 16 <= count; i += 16) most = _mm256_max_epu16(most, _mm256_and_si256(load(in + 2 * i), mask));
  __m256i rest = _mm256_setzero_si256();
  memcpy(&rest, in + 2 * i, 2 * (count - i));
  most = _mm256_max_epu16(most, _mm256_and_si256(rest, mask));
  const __m256i low = _mm256_and_si256(most, _mm256_set1_epi32(0xffff));
  return largest_lane(_mm256_max_epu32(low, _mm256_srli_epi32(most, 16)));
}

// ---- 8 and 4 bits

// q of 32 values as bytes, in order.
__m256i quantised(const float* values, __m256 inverse) {
  __m256i q[4];
  for (int part = 0; part < 4; ++part)
    q[part] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(values + 8 * part), inverse));
  const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
  // The packs work within halves of 128 bits.
  return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

// Two signed bytes each, of which the lower 4 bits count, into one: 16 bytes.
__m128i nibbles(__m256i bytes) {
  const __m256i low = _mm256_and_si256(bytes, _mm256_set1_epi8(15));
  const __m256i pairs = _mm256_maddubs_epi16(low, _mm256_set1_epi16(0x1001));  // low + 16·high
  return _mm256_castsi256_si128(_mm256_permute4x64_epi64(_mm256_packus_epi16(pairs, pairs), 0x08));
}

void quantise8(const float* values, size_t count, float inverse, uint8_t* out) {
  const __m256 factor = _mm256_set1_ps(inverse);
  size_t i = 0;
  for (; i + 32 <= count; i += 32) store(out + i, quantised(values + i, factor));
  if (i == count) return;
  float rest[32] = {};
  memcpy(rest, values + i, (count - i) * sizeof(float));
  const __m256i bytes = quantised(rest, factor);
  memcpy(out + i, &bytes, count - i);
}

void quantise4(const float* values, size_t count, float inverse, uint8_t* out) {
  const __m256 factor = _mm256_set1_ps(inverse);
  size_t i = 0;
  for (; i + 32 <= count; i += 32)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i / 2), nibbles(quantised(values + i, factor)));
  if (i == count) return;
  float rest[32] = {};
  memcpy(rest, values + i, (count - i) * sizeof(float));
  const __m128i bytes = nibbles(quantised(rest, factor));
  memcpy(out + i / 2, &bytes, (count - i + 1) / 2);
}

void store_scaled(float* out, __m128i bytes, __m256 scale) {
  const __m128i high = _mm_unpackhi_epi64(bytes, bytes);
  _mm256_storeu_ps(out, _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)), scale));
  _mm256_storeu_ps(out + 8, _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(high)), scale));
}

uint32_t largest_byte(__m128i bytes) {
  bytes = _mm_max_epu8(bytes, _mm_srli_si128(bytes, 8));
  bytes = _mm_max_epu8(bytes, _mm_srli_si128(bytes, 4));
  bytes = _mm_max_epu8(bytes, _mm_srli_si128(bytes, 2));
  bytes = _mm_max_epu8(bytes, _mm_srli_si128(bytes, 1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(bytes)) & 0xff;
}

uint32_t dequantise8(const uint8_t* in, size_t count, float scale, float* out) {
  const __m256 factor = _mm256_set1_ps(scale);
  __m128i most = _mm_setzero_si128();
  size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i));
    most = _mm_max_epu8(most, _mm_abs_epi8(bytes));
    store_scaled(out + i, bytes, factor);
  }
  if (i < count) {
    __m128i bytes = _mm_setzero_si128();
    memcpy(&bytes, in + i, count - i);
    most = _mm_max_epu8(most, _mm_abs_epi8(bytes));
    float rest[16];
    store_scaled(rest, bytes, factor);
    memcpy(out + i, rest, (count - i) * sizeof(float));
  }
  return largest_byte(most);
}

// 8 bytes of nibbles as 16 signed bytes.
__m128i signed_nibbles(const uint8_t* in, size_t bytes) {
  uint64_t word = 0;
  memcpy(&word, in, bytes);
  const __m128i packed = _mm_cvtsi64_si128(static_cast<long long>(word));
  const __m128i mask = _mm_set1_epi8(15), eight = _mm_set1_epi8(8);
  const __m128i apart =
      _mm_unpacklo_epi8(_mm_and_si128(packed, mask), _mm_and_si128(_mm_srli_epi16(packed, 4), mask));
  return _mm_sub_epi8(_mm_xor_si128(apart, eight), eight);
}

uint32_t dequantise4(const uint8_t* in, size_t count, float scale, float* out) {
  const __m256 factor = _mm256_set1_ps(scale);
  __m128i most = _mm_setzero_si128();
  size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m128i bytes = signed_nibbles(in + i / 2, 8);
    most = _mm_max_epu8(most, _mm_abs_epi8(bytes));
    store_scaled(out + i, bytes, factor);
  }
  if (i < count) {
    float rest[16];
    __m128i bytes = signed_nibbles(in + i / 2, (count - i + 1) / 2);
    store_scaled(rest, bytes, factor);
    memcpy(out + i, rest, (count - i) * sizeof(float));
    // The half of a byte beyond an odd count does not count.
    if (count % 2 != 0) {
      uint8_t inside[16];
      memcpy(inside, &bytes, sizeof inside);
      inside[count - i] = 0;
      memcpy(&bytes, inside, sizeof inside);
    }
    most = _mm_max_epu8(most, _mm_abs_epi8(bytes));
  }
  return largest_byte(most);
}

// ---- sums

struct LaneSums {
  __m256d first, second;  // lanes 0 to 3 and 4 to 7

  void add(__m256 values) {
    first = _mm256_add_pd(first, _mm256_cvtps_pd(_mm256_castps256_ps128(values)));
    second = _mm256_add_pd(second, _mm256_cvtps_pd(_mm256_extractf128_ps(values, 1)));
  }
  double total() const {
    const __m256d four = _mm256_add_pd(first, second);
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
  }
};

void split(const float* values, size_t count, float threshold, MagnitudeSides* sides) {
  LaneSums low{}, high{};
  __m256i above = _mm256_setzero_si256();
  const __m256 bound = _mm256_set1_ps(threshold), mask = _mm256_castsi256_ps(mask_of_magnitude());
  const auto add = [&](const float* from) {
    const __m256 magnitudes = _mm256_and_ps(_mm256_loadu_ps(from), mask);
    const __m256 is_high = _mm256_cmp_ps(magnitudes, bound, _CMP_GT_OQ);
    low.add(_mm256_andnot_ps(is_high, magnitudes));
    high.add(_mm256_and_ps(is_high, magnitudes));
    above = _mm256_sub_epi32(above, _mm256_castps_si256(is_high));
  };
  size_t i = 0;
  for (; i + 8 <= count; i += 8) add(values + i);
  if (i < count) {
    float rest[8] = {};
    memcpy(rest, values + i, (count - i) * sizeof(float));
    add(rest);
  }
  sides->low_sum = low.total();
  sides->high_sum = high.total();
  sides->high_count = sum_of_lanes(above);
}

}  // namespace

const CodecKernels codec_kernels_avx2 = {
    "avx2",    crc32c,    largest,     to_fp16,     from_fp16,   largest_fp16,
    quantise8, quantise4, dequantise8, dequantise4, select_avx2, split,
};

}  // namespace neuroshard::outer::detail

#endif
