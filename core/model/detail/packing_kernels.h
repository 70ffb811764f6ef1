// bf16 copies in the order in which products read them, by AVX-512: tiles of 16 or 32 rows are turned in
// registers. See core/model/kernels.h and packed_weight.h; pairs are two rows of the packed operand, side by
// side in 32 bits.
#pragma once

#include "core/model/detail/common.h"
#include "core/model/detail/optimizer_kernels.h"

#ifdef NS_KERNEL_BFLOAT16

#include <immintrin.h>

namespace neuroshard::model {
namespace {

// Rows that are stepped and packed together. Their 16 pairs fill a cache line of the forward copy, and their
// new values stay in the second-level cache between the step and the packing.
constexpr int64_t slab_rows = 16;
constexpr int64_t turned_rows = 32;  // of transpose_columns

inline __mmask16 first_floats(int64_t count) {
  return count >= 16 ? 0xffffu : count <= 0 ? 0u : static_cast<__mmask16>((1u << count) - 1u);
}
inline __mmask32 first_words(int64_t count) {
  return count >= 32 ? 0xffffffffu : count <= 0 ? 0u : (1u << count) - 1u;
}

inline __m512i narrowed(__m512 low, __m512 high) {
  return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

// The copies are read again only after the whole step: written past the caches, whose lines then need not be
// fetched first (measured: a sixth of adamw_packed, a third of pack_weight).
inline void store_packed(Bf16* target, __m512i value) {
  if (reinterpret_cast<uintptr_t>(target) % sizeof value == 0) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(target), value);
  } else {
    _mm512_storeu_si512(target, value);
  }
}

// [16 rows, 16] 32-bit values → [16, 16 rows].
inline void transpose(__m512i row[16]) {
  __m512i t[16];
  for (int i = 0; i < 16; i += 2) {  // neighbours within 128 bits
    t[i] = _mm512_unpacklo_epi32(row[i], row[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(row[i], row[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    row[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    row[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    row[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    row[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  for (int i = 0; i < 4;
       ++i) {  // row[4·g + i]: columns i, i+4, i+8, i+12 of the rows 4·g …; then whole 128 bits
    t[i] = _mm512_shuffle_i32x4(row[i], row[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(row[i], row[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4(row[i + 8], row[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(row[i + 8], row[i + 12], 0xdd);
  }
  for (int i = 0; i < 4; ++i) {
    row[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    row[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
    row[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
    row[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
  }
}

// 16 rows × 32 columns of a weight to the forward copy: 16 pairs of columns, each for 16 rows. `count` rows
// and `width` columns exist.
inline void pack_tile_forward(const float* weight, int64_t columns, int64_t count, int64_t width,
                              Bf16* target) {
  const __mmask16 low = first_floats(width);
  const __mmask16 high = first_floats(width - 16);
  __m512i row[16];
  for (int64_t o = 0; o < slab_rows; ++o) {
    const float* in = weight + o * columns;
    row[o] = o < count ? narrowed(_mm512_maskz_loadu_ps(low, in), _mm512_maskz_loadu_ps(high, in + 16))
                       : _mm512_setzero_si512();
  }
  transpose(row);
  for (int64_t pair = 0; pair < 16; ++pair) {
    store_packed(target + pair * 2 * packed_columns, row[pair]);
  }
}

// The same tile to the backward copy: 8 pairs of rows, each for 32 columns.
inline void pack_tile_backward(const float* weight, int64_t columns, int64_t count, int64_t width,
                               Bf16* target) {
  const __m512i interleave = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8,
                                              23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  for (int64_t o = 0; o < count; o += 2) {
    for (int64_t i = 0; i < 32; i += 16) {
      const __mmask16 mask = first_floats(width - i);
      const float* in = weight + o * columns + i;
      const __m512 even = _mm512_maskz_loadu_ps(mask, in);
      const __m512 odd = o + 1 < count ? _mm512_maskz_loadu_ps(mask, in + columns) : _mm512_setzero_ps();
      store_packed(target + o * packed_columns + 2 * i,
                   _mm512_permutexvar_epi16(interleave, narrowed(even, odd)));
    }
  }
}

// Both copies of the rows `first` … of a weight [rows, columns].
void pack_slab(const float* weight, int64_t first, int64_t rows, int64_t columns, Bf16* forward,
               Bf16* backward) {
  const int64_t count = rows - first < slab_rows ? rows - first : slab_rows;
  // (i, o) of the forward copy and (o, i) of the backward copy, both at i = 0 and o = first.
  Bf16* forward_at = forward + first / packed_columns * packed_columns * padded_rows_of(columns) +
                     first % packed_columns * 2;
  Bf16* backward_at = backward == nullptr ? nullptr : backward + first * packed_columns;
  for (int64_t i = 0; i < columns; i += 32) {
    const float* tile = weight + first * columns + i;
    pack_tile_forward(tile, columns, count, columns - i, forward_at + i * packed_columns);
    if (backward == nullptr) continue;
    const int64_t block = i / packed_columns * packed_columns * padded_rows_of(rows);
    pack_tile_backward(tile, columns, count, columns - i, backward_at + block + i % packed_columns * 2);
  }
  _mm_sfence();  // other threads read them after the end of the parallel loop
}

void pack_weight(const float* weight, int64_t rows, int64_t columns, Bf16* forward, Bf16* backward) {
#pragma omp parallel for schedule(static) if (rows * columns > least_parallel)
  for (int64_t first = 0; first < rows; first += slab_rows) {
    pack_slab(weight, first, rows, columns, forward, backward);
  }
}

void adamw_packed(float* parameter, float* gradient, float* moment1, float* moment2, int64_t rows,
                  int64_t columns, const AdamwScalars& scalars, Bf16* forward, Bf16* backward) {
#pragma omp parallel for schedule(static) if (rows * columns > least_parallel)
  for (int64_t first = 0; first < rows; first += slab_rows) {
    const int64_t count = rows - first < slab_rows ? rows - first : slab_rows;
    const int64_t at = first * columns;
    adamw_range(parameter + at, gradient + at, moment1 + at, moment2 + at, count * columns, scalars);
    pack_slab(parameter, first, rows, columns, forward, backward);
  }
}

// 32 rows × 8 columns of 16 bits → 8 × 32. Lane l of a register holds rows 8·l …, so transposing the four 8×8
// squares within the lanes leaves whole columns.
inline void turn_tile(const Bf16* source, int64_t stride, int64_t target_stride, __mmask32 kept,
                      int64_t columns, Bf16* target) {
  __m512i a[8];
  __m512i b[8];
  for (int64_t i = 0; i < 8; ++i) {
    const Bf16* in = source + i * stride;
    const auto at = [in, stride](int64_t lane) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + 8 * lane * stride));
    };
    __m512i row = _mm512_castsi128_si512(at(0));
    row = _mm512_inserti32x4(row, at(1), 1);
    row = _mm512_inserti32x4(row, at(2), 2);
    a[i] = _mm512_inserti32x4(row, at(3), 3);
  }
  for (int i = 0; i < 8; i += 2) {
    b[i] = _mm512_unpacklo_epi16(a[i], a[i + 1]);
    b[i + 1] = _mm512_unpackhi_epi16(a[i], a[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    a[i] = _mm512_unpacklo_epi32(b[i], b[i + 2]);
    a[i + 1] = _mm512_unpackhi_epi32(b[i], b[i + 2]);
    a[i + 2] = _mm512_unpacklo_epi32(b[i + 1], b[i + 3]);
    a[i + 3] = _mm512_unpackhi_epi32(b[i + 1], b[i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    b[2 * i] = _mm512_unpacklo_epi64(a[i], a[i + 4]);
    b[2 * i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 4]);
  }
  for (int64_t c = 0; c < 8 && c < columns; ++c) {
    _mm512_mask_storeu_epi16(target + c * target_stride, kept, b[c]);
  }
}

void transpose_columns(const Bf16* source, int64_t rows, int64_t columns, int64_t first, int64_t count,
                       int64_t padded_rows, Bf16* target) {
  for (int64_t r = 0; r < padded_rows; r += turned_rows) {
    const __mmask32 kept = first_words(padded_rows - r);
    for (int64_t c = 0; c < count; c += 8) {
      const Bf16* in = source + r * columns + first + c;
      Bf16* out = target + c * padded_rows + r;
      if (r + turned_rows <= rows && c + 8 <= count) {
        turn_tile(in, columns, padded_rows, kept, 8, out);
        continue;
      }
      Bf16 edge[turned_rows * 8] = {};
      const int64_t width = count - c < 8 ? count - c : 8;
      for (int64_t i = 0; i < turned_rows && r + i < rows; ++i) {
        memcpy(edge + i * 8, in + i * columns, static_cast<size_t>(width) * sizeof(Bf16));
      }
      turn_tile(edge, 8, padded_rows, kept, width, out);
    }
  }
}

void pack_columns(const Bf16* source, int64_t rows, int64_t columns, int64_t first, int64_t padded_rows,
                  Bf16* target) {
  const __m512i low = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7,
                                       38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
  const __mmask32 left = first_words(columns - first);
  const __mmask32 right = first_words(columns - first - 32);
  for (int64_t r = 0; r < padded_rows; r += 2) {
    const Bf16* in = source + r * columns + first;
    Bf16* out = target + r * packed_columns;
    const __mmask32 even = r < rows ? 0xffffffffu : 0u;
    const __mmask32 odd = r + 1 < rows ? 0xffffffffu : 0u;
    for (int64_t half = 0; half < 2; ++half) {
      const __mmask32 inside = half == 0 ? left : right;
      const __m512i a = _mm512_maskz_loadu_epi16(inside & even, in + 32 * half);
      const __m512i b = _mm512_maskz_loadu_epi16(inside & odd, in + columns + 32 * half);
      _mm512_storeu_si512(out + 64 * half, _mm512_permutex2var_epi16(a, low, b));
      _mm512_storeu_si512(out + 64 * half + 32, _mm512_permutex2var_epi16(a, high, b));
    }
  }
}

}  // namespace
}  // namespace neuroshard::model

#endif  // NS_KERNEL_BFLOAT16
