// The k largest of a chunk without sorting it: a bound that a few more than k values reach, then the exact
// bound among those few.
#if defined(__x86_64__)

#include "core/outer/detail/top_k_select_avx2.h"

#include "core/outer/detail/codec_lanes_avx2.h"

namespace neuroshard::outer::detail {
namespace {

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

}  // namespace

// For k well below the number of groups: if k groups have a value of some magnitude, so many values at least
// reach it. Few more do, and the exact bound is found among those.
uint32_t select_avx2(const float* values, uint32_t k, uint16_t* places, float* selected,
                     uint32_t* largest_out, uint32_t* hint) {
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

}  // namespace neuroshard::outer::detail

#endif
