// The codecs' loops for AVX2 with F16C, BMI1 and POPCNT (any processor with AVX2 that we know of).
#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>  // NOLINT: see codec_kernels.h

#include "core/outer/detail/codec_kernels.h"

namespace neuroshard::outer::detail {
namespace {

__m256i load(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
void store(void* to, __m256i value) {
  _mm256_storeu_si256(static_cast<__m256i*>(to), value);
}
__m256i mask_of_magnitude() {
  return _mm256_set1_epi32(static_cast<int>(magnitude_mask));
}
uint32_t magnitude(const float* value) {
  uint32_t bits;
  memcpy(&bits, value, sizeof bits);
  return bits & magnitude_mask;
}

uint32_t largest_lane(__m256i value) {
  __m128i half = _mm_max_epu32(_mm256_castsi256_si128(value), _mm256_extracti128_si256(value, 1));
  half = _mm_max_epu32(half, _mm_shuffle_epi32(half, 0x4e));
  half = _mm_max_epu32(half, _mm_shuffle_epi32(half, 0xb1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(half));
}
uint32_t sum_of_lanes(__m256i value) {
  __m128i half = _mm_add_epi32(_mm256_castsi256_si128(value), _mm256_extracti128_si256(value, 1));
  half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0x4e));
  half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0xb1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(half));
}

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

// ---- the k largest of a chunk

// How many of count values (a multiple of 16) have at least this magnitude, 1 ≤ bound.
uint32_t at_least(const float* values, size_t count, uint32_t bound) {
  const __m256i below = _mm256_set1_epi32(static_cast<int>(bound - 1)), mask = mask_of_magnitude();
  __m256i even = _mm256_setzero_si256(), odd = _mm256_setzero_si256();
  for (size_t i = 0; i < count; i += 16) {
    even = _mm256_sub_epi32(even, _mm256_cmpgt_epi32(_mm256_and_si256(load(values + i), mask), below));
    odd = _mm256_sub_epi32(odd, _mm256_cmpgt_epi32(_mm256_and_si256(load(values + i + 8), mask), below));
  }
  return sum_of_lanes(_mm256_add_epi32(even, odd));
}

struct Bound {
  uint32_t bits;   // the bound
  uint32_t count;  // values at least as large
};

// A bound that k to k + slack values reach, or where equal values do not allow one, the highest that k reach.
// `low` is one that at least k reach, `low_count` many; no value reaches `high`. Magnitudes as bits are about
// their logarithms: steps that double from a guess on, then halves.
Bound find_bound(const float* values, size_t count, uint32_t k, uint32_t slack, Bound low, uint32_t high,
                 uint32_t guess, uint32_t step) {
  uint32_t next = guess > low.bits && guess < high ? guess : low.bits + (high - low.bits) / 2;
  bool up = true, down = true;  // whether no other direction was taken yet
  while (low.count > k + slack && high - low.bits > 1) {
    const uint32_t reached = at_least(values, count, next);
    if (reached >= k) {
      low.bits = next, low.count = reached, down = false;
    } else {
      high = next, up = false;
    }
    const uint32_t room = high - low.bits;
    if (step >= room) up = down = false;
    if (up) {
      next = low.bits + step;
    } else if (down) {
      next = high - step;
    } else {
      next = low.bits + room / 2;
    }
    step = step < room ? 2 * step : room;
  }
  return low;
}

// Takes the places in `masks` (a bit per value) in order: `bound.count` of them or k, whichever is less.
// Where more than k reach the bound, of those equal to it only the first ones are taken.
uint32_t take(const float* values, const uint64_t* masks, uint32_t k, Bound bound, uint16_t* places,
              float* selected) {
  uint32_t equal = bound.count;
  if (bound.count > k) equal = k - at_least(values, select_values, bound.bits + 1);
  uint32_t found = 0;
  for (uint32_t word = 0; word < select_values / 64; ++word) {
    for (uint64_t bits = masks[word]; bits != 0; bits = _blsr_u64(bits)) {
      const uint32_t place = 64 * word + static_cast<uint32_t>(_tzcnt_u64(bits));
      if (magnitude(values + place) == bound.bits) {
        if (equal == 0) continue;
        --equal;
      }
      places[found] = static_cast<uint16_t>(place);
      selected[found++] = values[place];
    }
  }
  return found;
}

// A bit per value: whether its magnitude reaches the bound.
void compare(const float* values, uint32_t bound, uint64_t* masks) {
  const __m256i below = _mm256_set1_epi32(static_cast<int>(bound - 1)), mask = mask_of_magnitude();
  for (size_t word = 0; word < select_values / 64; ++word) {
    __m256i above[8];
    for (int part = 0; part < 8; ++part)
      above[part] = _mm256_cmpgt_epi32(_mm256_and_si256(load(values + 64 * word + 8 * part), mask), below);
    uint64_t bits = 0;
    for (int half = 0; half < 2; ++half) {
      const __m256i* part = above + 4 * half;
      __m256i bytes =
          _mm256_packs_epi16(_mm256_packs_epi32(part[0], part[1]), _mm256_packs_epi32(part[2], part[3]));
      bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
      bits |= static_cast<uint64_t>(static_cast<uint32_t>(_mm256_movemask_epi8(bytes))) << (32 * half);
    }
    masks[word] = bits;
    // The chunk after this one, while the arithmetic leaves memory idle.
    const char* ahead = reinterpret_cast<const char*>(values + select_values + 64 * word);
    for (int line = 0; line < 256; line += 64) _mm_prefetch(ahead + line, _MM_HINT_T1);
  }
}

// Any k: the bound is found among all values.
uint32_t select_among_all(const float* values, uint32_t k, uint16_t* places, float* selected, uint32_t most,
                          uint32_t* hint) {
  uint64_t masks[select_values / 64];
  Bound bound{1, at_least(values, select_values, 1)};
  if (bound.count > k) {
    bound = find_bound(values, select_values, k, 0, bound, most + 1, *hint, 1u << 17);
    *hint = bound.bits;
  }
  compare(values, bound.bits, masks);
  return take(values, masks, k, bound, places, selected);
}

constexpr uint32_t group_count = 256;
constexpr uint32_t most_candidates = 512;

// The largest magnitude of each group of 16 values (one lane of 16 consecutive vectors). Returns that of all.
uint32_t maxima_of_groups(const float* values, float* maxima) {
  const __m256i mask = mask_of_magnitude();
  __m256i most = _mm256_setzero_si256();
  for (size_t block = 0; block < group_count / 8; ++block) {
    const float* from = values + 128 * block;
    __m256i even = _mm256_and_si256(load(from), mask), odd = _mm256_and_si256(load(from + 8), mask);
    for (int i = 2; i < 16; i += 2) {
      even = _mm256_max_epu32(even, _mm256_and_si256(load(from + 8 * i), mask));
      odd = _mm256_max_epu32(odd, _mm256_and_si256(load(from + 8 * i + 8), mask));
    }
    even = _mm256_max_epu32(even, odd);
    store(maxima + 8 * block, even);
    most = _mm256_max_epu32(most, even);
  }
  return largest_lane(most);
}

// The places in `masks`, at most most_candidates of them, and their values. Most words have few bits.
uint32_t gather(const float* values, const uint64_t* masks, uint16_t* places, float* gathered) {
  uint32_t found = 0;
  for (uint32_t word = 0; word < select_values / 64; ++word) {
    uint64_t bits = masks[word];
    const uint32_t count = static_cast<uint32_t>(_mm_popcnt_u64(bits));
    uint16_t* out = places + found;
    for (int i = 0; i < 3; ++i) {
      out[i] = static_cast<uint16_t>(64 * word + static_cast<uint32_t>(_tzcnt_u64(bits)));
      bits = _blsr_u64(bits);
    }
    for (uint32_t i = 3; i < count; ++i) {
      out[i] = static_cast<uint16_t>(64 * word + static_cast<uint32_t>(_tzcnt_u64(bits)));
      bits = _blsr_u64(bits);
    }
    found += count;
  }
  for (uint32_t i = 0; i < found; ++i) gathered[i] = values[places[i]];
  return found;
}

uint32_t population(const uint64_t* masks) {
  uint64_t sum = 0;
  for (size_t word = 0; word < select_values / 64; ++word)
    sum += static_cast<uint64_t>(_mm_popcnt_u64(masks[word]));
  return static_cast<uint32_t>(sum);
}

// For k well below the number of groups: if k groups have a value of some magnitude, so many values at least
// reach it. Few more do, and the exact bound is found among those.
uint32_t select(const float* values, uint32_t k, uint16_t* places, float* selected, uint32_t* largest_out,
                uint32_t* hint) {
  float maxima[group_count];
  const uint32_t most = maxima_of_groups(values, maxima);
  *largest_out = most;
  if (most >= 0x7f800000) return 0;
  Bound bound{1, k <= group_count / 2 ? at_least(maxima, group_count, 1) : 0};
  if (bound.count < k) return select_among_all(values, k, places, selected, most, hint);
  bound = find_bound(maxima, group_count, k, k / 8, bound, most + 1, *hint, 1u << 19);
  *hint = bound.bits;

  uint64_t masks[select_values / 64];
  compare(values, bound.bits, masks);
  const uint32_t reached = population(masks);
  if (reached > most_candidates) return select_among_all(values, k, places, selected, most, hint);
  uint16_t candidate_places[most_candidates + 4];
  float candidates[most_candidates + 16];
  const uint32_t found = gather(values, masks, candidate_places, candidates);
  const size_t padded = (found + 15) / 16 * 16;
  for (size_t i = found; i < padded; ++i) candidates[i] = 0;
  const Bound exact = find_bound(candidates, padded, k, 0, Bound{bound.bits, found}, most + 1,
                                 bound.bits + (1u << 19), 1u << 18);
  uint32_t equal = exact.count;
  if (exact.count > k) equal = k - at_least(candidates, padded, exact.bits + 1);
  if (exact.count == k) {  // nearly always: no ties at the bound
    uint32_t taken = 0;
    for (uint32_t i = 0; i < found && taken < k; ++i) {
      places[taken] = candidate_places[i];
      selected[taken] = candidates[i];
      taken += magnitude(candidates + i) >= exact.bits ? 1u : 0u;
    }
    return taken;
  }
  uint32_t taken = 0;
  for (uint32_t i = 0; i < found; ++i) {
    const uint32_t key = magnitude(candidates + i);
    if (key < exact.bits || (key == exact.bits && equal == 0)) continue;
    if (key == exact.bits) --equal;
    places[taken] = candidate_places[i];
    selected[taken++] = candidates[i];
  }
  return taken;
}

}  // namespace

const CodecKernels codec_kernels_avx2 = {
    "avx2",    crc32c,    largest,     to_fp16,     from_fp16, largest_fp16,
    quantise8, quantise4, dequantise8, dequantise4, select,
};

}  // namespace neuroshard::outer::detail

#endif
