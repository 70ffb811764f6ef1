// The source of all kernel tables; NS_AGGREGATION_TABLE names this one. Nothing from the standard library is
// called here: an inline function of it, compiled for a newer processor, might be the one that the linker
// keeps for everybody.
#pragma once

#include "core/outer/detail/aggregation_kernels.h"
#include "core/outer/detail/vectors.h"

namespace neuroshard::outer::detail {
namespace {

// ---- Gram matrix

// Rows [first, last) of a block as fp64, zeros behind the end of each, and for rows from n on.
void widen_rows(const float* const* rows, std::size_t n, std::size_t first, std::size_t last, std::size_t at,
                std::size_t count, double* widened) {
  const std::size_t padded = (count + 7) / 8 * 8;
  for (std::size_t i = first; i < last; ++i) {
    double* to = widened + i * gram_block;
    std::size_t c = 0;
    for (; i < n && c < count; ++c) to[c] = rows[i][at + c];
    for (; c < padded; ++c) to[c] = 0;
  }
}

NS_INLINE double tree(const double* lanes) {
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

// Sums of products of two rows a with four rows b, `doubles` of the eight lanes at a time. Eight to ten sums
// are in flight, which is what the latency of an addition asks for and the registers hold.
NS_INLINE void gram_tile(const double* a, const double* b, std::size_t count, double* lanes,
                         std::size_t lanes_stride) {
  for (std::size_t part = 0; part < 8; part += doubles) {
    double* l0 = lanes + part;
    double* l1 = l0 + lanes_stride;
    VD s00 = load(l0), s01 = load(l0 + 8), s02 = load(l0 + 16), s03 = load(l0 + 24);
    VD s10 = load(l1), s11 = load(l1 + 8), s12 = load(l1 + 16), s13 = load(l1 + 24);
    for (std::size_t c = part; c < count; c += 8) {
      const VD a0 = load(a + c), a1 = load(a + gram_block + c);
      const VD b0 = load(b + c), b1 = load(b + gram_block + c);
      s00 = add_exact_product(s00, a0, b0), s10 = add_exact_product(s10, a1, b0);
      s01 = add_exact_product(s01, a0, b1), s11 = add_exact_product(s11, a1, b1);
      const VD b2 = load(b + 2 * gram_block + c), b3 = load(b + 3 * gram_block + c);
      s02 = add_exact_product(s02, a0, b2), s12 = add_exact_product(s12, a1, b2);
      s03 = add_exact_product(s03, a0, b3), s13 = add_exact_product(s13, a1, b3);
    }
    store(l0, s00), store(l0 + 8, s01), store(l0 + 16, s02), store(l0 + 24, s03);
    store(l1, s10), store(l1 + 8, s11), store(l1 + 16, s12), store(l1 + 24, s13);
  }
}

// Four widened rows of a block.
struct Widened {
  const double* rows;
  NS_INLINE VD operator()(std::size_t row, std::size_t c) const { return load(rows + row * gram_block + c); }
  NS_INLINE void ask_for_next(std::size_t, std::size_t) const {}
};
// The same, from a block of floats; what was widened is kept for the tiles, and the block after the next is
// asked for.
struct Widening {
  const float* rows[4];
  double* widened;
  NS_INLINE VD operator()(std::size_t row, std::size_t c) const {
    const VD v = load_widened(rows[row] + c);
    store(widened + row * gram_block + c, v);
    return v;
  }
  // Each part of the lanes asks for its share of the four rows.
  NS_INLINE void ask_for_next(std::size_t c, std::size_t part) const {
    for (std::size_t row = part / 2; row < part / 2 + doubles / 2; ++row)
      __builtin_prefetch(rows[row] + c + 2 * gram_block);
  }
};

// Four rows among themselves.
template <class Rows>
NS_INLINE void gram_triangle(const Rows& rows, std::size_t count, double* lanes, std::size_t lanes_stride) {
  for (std::size_t part = 0; part < 8; part += doubles) {
    double* l0 = lanes + part;
    double* l1 = l0 + lanes_stride;
    double* l2 = l1 + lanes_stride;
    double* l3 = l2 + lanes_stride;
    VD s00 = load(l0), s01 = load(l0 + 8), s02 = load(l0 + 16), s03 = load(l0 + 24);
    VD s11 = load(l1 + 8), s12 = load(l1 + 16), s13 = load(l1 + 24);
    VD s22 = load(l2 + 16), s23 = load(l2 + 24), s33 = load(l3 + 24);
    for (std::size_t c = part; c < count; c += 8) {
      const VD a0 = rows(0, c), a1 = rows(1, c), a2 = rows(2, c), a3 = rows(3, c);
      s00 = add_exact_product(s00, a0, a0), s01 = add_exact_product(s01, a0, a1);
      s02 = add_exact_product(s02, a0, a2), s03 = add_exact_product(s03, a0, a3);
      s11 = add_exact_product(s11, a1, a1), s12 = add_exact_product(s12, a1, a2);
      s13 = add_exact_product(s13, a1, a3), s22 = add_exact_product(s22, a2, a2);
      s23 = add_exact_product(s23, a2, a3), s33 = add_exact_product(s33, a3, a3);
      rows.ask_for_next(c, part);
    }
    store(l0, s00), store(l0 + 8, s01), store(l0 + 16, s02), store(l0 + 24, s03);
    store(l1 + 8, s11), store(l1 + 16, s12), store(l1 + 24, s13);
    store(l2 + 16, s22), store(l2 + 24, s23), store(l3 + 24, s33);
  }
}

void gram(const float* const* rows, std::size_t n, std::size_t count, double* gram, double* widened,
          double* lanes) {
  const std::size_t padded_rows = rows_of_gram(n), stride = padded_rows * 8;
  for (std::size_t i = 0; i < padded_rows * stride; ++i) lanes[i] = 0;
  for (std::size_t at = 0; at < count; at += gram_block) {
    const std::size_t left = count - at, width = left < gram_block ? (left + 7) / 8 * 8 : gram_block;
    for (std::size_t i = 0; i < padded_rows; i += 4) {
      double* a = widened + i * gram_block;
      double* own = lanes + i * stride + i * 8;
      if (i + 4 <= n && left >= gram_block) {
        gram_triangle(Widening{{rows[i] + at, rows[i + 1] + at, rows[i + 2] + at, rows[i + 3] + at}, a},
                      width, own, stride);
      } else {
        widen_rows(rows, n, i, i + 4, at, left < gram_block ? left : gram_block, widened);
        gram_triangle(Widened{a}, width, own, stride);
      }
    }
    for (std::size_t i = 0; i < padded_rows; i += 4)
      for (std::size_t j = i + 4; j < padded_rows; j += 4)
        for (std::size_t half = 0; half < 4; half += 2)
          gram_tile(widened + (i + half) * gram_block, widened + j * gram_block, width,
                    lanes + (i + half) * stride + j * 8, stride);
  }
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = i; j < n; ++j) gram[i * n + j] += tree(lanes + i * stride + j * 8);
}

void squares(const float* const* rows, std::size_t n, std::size_t count, double* sums) {
  for (std::size_t i = 0; i < n; ++i) {
    VD sum[8 / doubles] = {};
    std::size_t c = 0;
    for (; c + 8 <= count; c += 8)
      for (std::size_t part = 0; part < 8 / doubles; ++part) {
        const VD x = load_widened(rows[i] + c + part * doubles);
        sum[part] = add_exact_product(sum[part], x, x);
      }
    double lanes[8];
    for (std::size_t part = 0; part < 8 / doubles; ++part) store(lanes + part * doubles, sum[part]);
    for (std::size_t lane = 0; c < count; ++c, ++lane)
      lanes[lane] += static_cast<double>(rows[i][c]) * static_cast<double>(rows[i][c]);
    sums[i] += tree(lanes);
  }
}

// ---- Weighted sums

bool combine(const float* const* rows, const double* weights, std::size_t n, std::size_t count, float* out) {
  constexpr std::size_t parts = kernel_step / doubles > 4 ? 4 : kernel_step / doubles;
  VF bad = {};
  for (std::size_t c = 0; c < count; c += parts * doubles) {
    VD sum[parts] = {};
    for (std::size_t i = 0; i < n; ++i) {
      const VD weight = weights[i] - VD{};
      const float* row = rows[i] + c;
      for (std::size_t p = 0; p < parts; ++p) sum[p] += weight * load_widened(row + p * doubles);
    }
    for (std::size_t p = 0; p < parts; ++p) store_narrowed(out + c + p * doubles, sum[p]);
    for (std::size_t p = 0; p < parts * doubles; p += floats) {
      const VF v = load(out + c + p);
      bad += v - v;  // 0, or NaN for what is not finite
    }
  }
  return all_zero(bad);
}

// ---- Coordinate rules

template <std::size_t N>
struct Network {
  Comparator pairs[N * N] = {};
  std::size_t size = 0;

  constexpr Network() {
    for (std::size_t p = 1; p < N; p *= 2)
      for (std::size_t k = p; k >= 1; k /= 2)
        for (std::size_t j = k % p; j + k < N; j += 2 * k)
          for (std::size_t i = 0; i < k && i + j + k < N; ++i)
            if ((i + j) / (2 * p) == (i + j + k) / (2 * p))
              pairs[size++] = {static_cast<std::uint16_t>(i + j), static_cast<std::uint16_t>(i + j + k)};
  }
};
template <std::size_t N>
constexpr Network<N> network_of{};

template <std::size_t N, std::size_t I = 0>
NS_INLINE void sort_registers(VF* v) {
  if constexpr (I < network_of<N>.size) {
    constexpr Comparator pair = network_of<N>.pairs[I];
    const VF a = v[pair.a], b = v[pair.b];
    v[pair.a] = smaller(a, b);
    v[pair.b] = larger(a, b);
    sort_registers<N, I + 1>(v);
  }
}

// The mean of the kept ones of sorted vectors, `stride` floats apart.
NS_INLINE void store_mean(const float* sorted, std::size_t stride, Kept kept, double share, float* out) {
  VD low = {}, high = {};
  for (std::size_t i = kept.low; i < kept.high; ++i) {
    const VF v = load(sorted + i * stride);
    low += widen_low(v);
    high += widen_high(v);
  }
  store_narrowed(out, low * share);
  store_narrowed(out + doubles, high * share);
}

// The kept range of N values, where the compiler knows it: then it drops the comparisons that only order
// what is cut off.
template <std::size_t Low, std::size_t High>
struct KeptAlways {
  constexpr explicit KeptAlways(Kept) {}
  static constexpr std::size_t low = Low, high = High;
};

// The mean of the kept ones of N sorted vectors in registers.
template <std::size_t N>
NS_INLINE void store_mean(const VF* v, Kept kept, double share, float* out) {
  float sorted[N * floats];
  for (std::size_t i = 0; i < N; ++i) store(sorted + i * floats, v[i]);
  store_mean(sorted, floats, kept, share, out);
}
template <std::size_t N, std::size_t Low, std::size_t High>
NS_INLINE void store_mean(const VF* v, KeptAlways<Low, High>, double share, float* out) {
  if constexpr (High - Low == 1) {
    store(out, v[Low] + 0.0f);  // 0 + v in fp64, times 1, rounded
  } else {
    VD low = {}, high = {};
#pragma GCC unroll 16
    for (std::size_t i = Low; i < High; ++i) {
      low += widen_low(v[i]);
      high += widen_high(v[i]);
    }
    store_narrowed(out, low * share);
    store_narrowed(out + doubles, high * share);
  }
}

// Scales: null for values as they are, known to be finite.
template <std::size_t N, class WhatIsKept, bool Scaled>
bool sort_rows(const float* const* rows, const float* scales, std::size_t count, Kept kept, float* out) {
  const WhatIsKept what_is_kept(kept);
  const double share = 1.0 / static_cast<double>(kept.high - kept.low);
  VF bad[2] = {};
  for (std::size_t c = 0; c < count; c += floats) {
    VF v[N];
#pragma GCC unroll 16
    for (std::size_t i = 0; i < N; ++i) {
      v[i] = load(rows[i] + c);
      if constexpr (Scaled) {
        v[i] *= scales[i];
        bad[i % 2] = add_unless_finite(bad[i % 2], v[i]);
      }
    }
    sort_registers<N>(v);
    store_mean<N>(v, what_is_kept, share, out + c);
  }
  return all_zero(bad[0] + bad[1]);
}

// The median, the mean without a quarter at each end, and any other choice.
template <std::size_t N, bool Scaled>
bool sorted_registers(const float* const* rows, const float* scales, std::size_t count, Kept kept,
                      float* out) {
  constexpr std::size_t middle = (N - 1) / 2, cut = N / 4;
  if (kept.low == middle && kept.high == middle + 1)
    return sort_rows<N, KeptAlways<middle, middle + 1>, Scaled>(rows, scales, count, kept, out);
  if (kept.low == cut && kept.high == N - cut)
    return sort_rows<N, KeptAlways<cut, N - cut>, Scaled>(rows, scales, count, kept, out);
  return sort_rows<N, Kept, Scaled>(rows, scales, count, kept, out);
}

using SortedRegisters = bool (*)(const float* const*, const float*, std::size_t, Kept, float*);
template <bool Scaled>
constexpr SortedRegisters sorted_registers_of[max_register_rows + 1] = {nullptr,
                                                                        sorted_registers<1, Scaled>,
                                                                        sorted_registers<2, Scaled>,
                                                                        sorted_registers<3, Scaled>,
                                                                        sorted_registers<4, Scaled>,
                                                                        sorted_registers<5, Scaled>,
                                                                        sorted_registers<6, Scaled>,
                                                                        sorted_registers<7, Scaled>,
                                                                        sorted_registers<8, Scaled>,
                                                                        sorted_registers<9, Scaled>,
                                                                        sorted_registers<10, Scaled>,
                                                                        sorted_registers<11, Scaled>,
                                                                        sorted_registers<12, Scaled>,
                                                                        sorted_registers<13, Scaled>,
                                                                        sorted_registers<14, Scaled>,
                                                                        sorted_registers<15, Scaled>,
                                                                        sorted_registers<16, Scaled>};

// Sorts the rows of a block in the cache, coordinate by coordinate.
void sort_block(float* block, const Comparator* network, std::size_t comparators) {
  for (std::size_t k = 0; k < comparators; ++k) {
    float *a = block + network[k].a * mix_block, *b = block + network[k].b * mix_block;
    for (std::size_t c = 0; c < mix_block; c += floats) {
      const VF x = load(a + c), y = load(b + c);
      store(a + c, smaller(x, y));
      store(b + c, larger(x, y));
    }
  }
}

void means_of_block(const float* block, std::size_t width, Kept kept, float* out) {
  const double share = 1.0 / static_cast<double>(kept.high - kept.low);
  for (std::size_t c = 0; c < width; c += floats) store_mean(block + c, mix_block, kept, share, out + c);
}

bool sorted(const float* const* rows, const float* scales, std::size_t n, std::size_t count, Kept kept,
            const Comparator* network, std::size_t comparators, float* block, float* out) {
  if (n <= max_register_rows) return sorted_registers_of<true>[n](rows, scales, count, kept, out);
  VF bad = {};
  for (std::size_t at = 0; at < count; at += mix_block) {
    const std::size_t width = count - at < mix_block ? count - at : mix_block;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t c = 0; c < width; c += floats) {
        const VF v = load(rows[i] + at + c) * scales[i];
        bad = add_unless_finite(bad, v);
        store(block + i * mix_block + c, v);
      }
    sort_block(block, network, comparators);
    means_of_block(block, width, kept, out + at);
  }
  return all_zero(bad);
}

// ---- Nearest-neighbour mixing before a coordinate rule

// A strip of kernel_step coordinates: the scaled rows as fp64 to `widened`, their sum to `sum`.
constexpr std::size_t strip_vectors = kernel_step / doubles;
NS_INLINE void widen_strip(const float* const* rows, const float* scales, std::size_t n, std::size_t at,
                           double* widened, VD* sum) {
  for (std::size_t p = 0; p < strip_vectors; ++p) sum[p] = VD{};
  for (std::size_t i = 0; i < n; ++i) {
    const float* from = rows[i] + at;
    double* to = widened + i * kernel_step;
    __builtin_prefetch(from + mix_block);  // a strip is a cache line
    for (std::size_t p = 0; p < strip_vectors; p += 2) {
      const VF v = load(from + p * doubles) * scales[i];
      const VD low = widen_low(v), high = widen_high(v);
      store(to + p * doubles, low);
      store(to + (p + 1) * doubles, high);
      sum[p] += low;
      sum[p + 1] += high;
    }
  }
}

// One row of it, mixed: the sum without the f rows left out, times share.
NS_INLINE void mix_strip(const double* widened, const VD* sum, const std::uint32_t* left_out, std::size_t f,
                         double share, float* out) {
  VD rest[strip_vectors];
  for (std::size_t p = 0; p < strip_vectors; ++p) rest[p] = sum[p];
  for (std::size_t k = 0; k < f; ++k)
    for (std::size_t p = 0; p < strip_vectors; ++p)
      rest[p] -= load(widened + left_out[k] * kernel_step + p * doubles);
  for (std::size_t p = 0; p < strip_vectors; ++p) store_narrowed(out + p * doubles, rest[p] * share);
}

void mixed_sorted(const float* const* rows, const float* scales, std::size_t n, std::size_t count,
                  const std::uint32_t* left_out, std::size_t f, Kept kept, const Comparator* network,
                  std::size_t comparators, double* widened, float* block, float* out) {
  const double share = 1.0 / static_cast<double>(n - f);
  // Rows that leave out the same are the same once mixed: in registers they need be mixed only once.
  const bool in_registers = n <= max_register_rows;
  std::size_t first[max_register_rows];
  const float* mixed[max_register_rows];
  for (std::size_t i = 0; in_registers && i < n; ++i) {
    const auto same = [&](std::size_t j) {
      std::size_t k = 0;
      while (k < f && left_out[i * f + k] == left_out[j * f + k]) ++k;
      return k == f;
    };
    first[i] = 0;
    while (!same(first[i])) ++first[i];
    mixed[i] = block + first[i] * mix_block;
  }
  for (std::size_t at = 0; at < count; at += mix_block) {
    const std::size_t width = count - at < mix_block ? count - at : mix_block;
    for (std::size_t c = 0; c < width; c += kernel_step) {
      VD sum[strip_vectors];
      widen_strip(rows, scales, n, at + c, widened, sum);
      for (std::size_t i = 0; i < n; ++i)
        if (!in_registers || first[i] == i)
          mix_strip(widened, sum, left_out + i * f, f, share, block + i * mix_block + c);
    }
    if (in_registers) {
      sorted_registers_of<false>[n](mixed, nullptr, width, kept, out + at);
    } else {
      sort_block(block, network, comparators);
      means_of_block(block, width, kept, out + at);
    }
  }
}

}  // namespace

extern const AggregationKernels NS_AGGREGATION_TABLE;
const AggregationKernels NS_AGGREGATION_TABLE = {gram, squares, combine, sorted, mixed_sorted};

}  // namespace neuroshard::outer::detail
