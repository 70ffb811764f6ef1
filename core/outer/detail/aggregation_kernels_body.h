// The source of all kernel tables; NS_AGGREGATION_TABLE names this one. Nothing from the standard library is
// called here: an inline function of it, compiled for a newer processor, might be the one that the linker
// keeps for everybody.
#pragma once

#include "core/outer/detail/aggregation_kernels.h"
#include "core/outer/detail/vectors.h"

namespace neuroshard::outer::detail {
namespace {

// ---- Gram matrix

// One block of up to gram_block coordinates as fp64, rows one after the other, zeros behind the end.
std::size_t widen_block(const float* const* rows, std::size_t n, std::size_t at, std::size_t count,
                        double* widened) {
  const std::size_t padded = (count + 7) / 8 * 8;
  for (std::size_t i = 0; i < n; ++i) {
    double* to = widened + i * gram_block;
    const float* from = rows[i] + at;
    std::size_t c = 0;
    for (; c + kernel_step <= count; c += kernel_step) {
      __builtin_prefetch(from + c + gram_block);  // arrives while this block is multiplied
      for (std::size_t p = 0; p < kernel_step; p += doubles) store(to + c + p, load_widened(from + c + p));
    }
    for (; c < count; ++c) to[c] = from[c];
    for (; c < padded; ++c) to[c] = 0;
  }
  for (std::size_t i = n; i < rows_of_gram(n); ++i)
    for (std::size_t c = 0; c < padded; ++c) widened[i * gram_block + c] = 0;
  return padded;
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

// Four rows among themselves.
NS_INLINE void gram_triangle(const double* a, std::size_t count, double* lanes, std::size_t lanes_stride) {
  for (std::size_t part = 0; part < 8; part += doubles) {
    double* l0 = lanes + part;
    double* l1 = l0 + lanes_stride;
    double* l2 = l1 + lanes_stride;
    double* l3 = l2 + lanes_stride;
    VD s00 = load(l0), s01 = load(l0 + 8), s02 = load(l0 + 16), s03 = load(l0 + 24);
    VD s11 = load(l1 + 8), s12 = load(l1 + 16), s13 = load(l1 + 24);
    VD s22 = load(l2 + 16), s23 = load(l2 + 24), s33 = load(l3 + 24);
    for (std::size_t c = part; c < count; c += 8) {
      const VD a0 = load(a + c), a1 = load(a + gram_block + c);
      const VD a2 = load(a + 2 * gram_block + c), a3 = load(a + 3 * gram_block + c);
      s00 = add_exact_product(s00, a0, a0), s01 = add_exact_product(s01, a0, a1);
      s02 = add_exact_product(s02, a0, a2), s03 = add_exact_product(s03, a0, a3);
      s11 = add_exact_product(s11, a1, a1), s12 = add_exact_product(s12, a1, a2);
      s13 = add_exact_product(s13, a1, a3), s22 = add_exact_product(s22, a2, a2);
      s23 = add_exact_product(s23, a2, a3), s33 = add_exact_product(s33, a3, a3);
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
    const std::size_t left = count - at;
    const std::size_t width = widen_block(rows, n, at, left < gram_block ? left : gram_block, widened);
    for (std::size_t i = 0; i < padded_rows; i += 4) {
      const double* a = widened + i * gram_block;
      gram_triangle(a, width, lanes + i * stride + i * 8, stride);
      for (std::size_t j = i + 4; j < padded_rows; j += 4)
        for (std::size_t half = 0; half < 4; half += 2)
          gram_tile(a + half * gram_block, widened + j * gram_block, width,
                    lanes + (i + half) * stride + j * 8, stride);
    }
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
    v[pair.a] = a < b ? a : b;
    v[pair.b] = a < b ? b : a;
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

template <std::size_t N>
bool sorted_registers(const float* const* rows, const float* scales, std::size_t count, Kept kept,
                      float* out) {
  const double share = 1.0 / static_cast<double>(kept.high - kept.low);
  VF bad = {};
  for (std::size_t c = 0; c < count; c += floats) {
    VF v[N];
    for (std::size_t i = 0; i < N; ++i) {
      v[i] = load(rows[i] + c) * scales[i];
      bad += v[i] * 0.0f;  // NaN for what is not finite
    }
    sort_registers<N>(v);
    float sorted[N * floats];
    for (std::size_t i = 0; i < N; ++i) store(sorted + i * floats, v[i]);
    store_mean(sorted, floats, kept, share, out + c);
  }
  return all_zero(bad);
}

using SortedRegisters = bool (*)(const float* const*, const float*, std::size_t, Kept, float*);
constexpr SortedRegisters sorted_registers_of[max_register_rows + 1] = {nullptr,
                                                                        sorted_registers<1>,
                                                                        sorted_registers<2>,
                                                                        sorted_registers<3>,
                                                                        sorted_registers<4>,
                                                                        sorted_registers<5>,
                                                                        sorted_registers<6>,
                                                                        sorted_registers<7>,
                                                                        sorted_registers<8>,
                                                                        sorted_registers<9>,
                                                                        sorted_registers<10>,
                                                                        sorted_registers<11>,
                                                                        sorted_registers<12>,
                                                                        sorted_registers<13>,
                                                                        sorted_registers<14>,
                                                                        sorted_registers<15>,
                                                                        sorted_registers<16>};

// Sorts the rows of a block in the cache, coordinate by coordinate.
void sort_block(float* block, const Comparator* network, std::size_t comparators) {
  for (std::size_t k = 0; k < comparators; ++k) {
    float *a = block + network[k].a * mix_block, *b = block + network[k].b * mix_block;
    for (std::size_t c = 0; c < mix_block; c += floats) {
      const VF x = load(a + c), y = load(b + c);
      store(a + c, x < y ? x : y);
      store(b + c, x < y ? y : x);
    }
  }
}

void means_of_block(const float* block, std::size_t width, Kept kept, float* out) {
  const double share = 1.0 / static_cast<double>(kept.high - kept.low);
  for (std::size_t c = 0; c < width; c += floats) store_mean(block + c, mix_block, kept, share, out + c);
}

bool sorted(const float* const* rows, const float* scales, std::size_t n, std::size_t count, Kept kept,
            const Comparator* network, std::size_t comparators, float* block, float* out) {
  if (n <= max_register_rows) return sorted_registers_of[n](rows, scales, count, kept, out);
  VF bad = {};
  for (std::size_t at = 0; at < count; at += mix_block) {
    const std::size_t width = count - at < mix_block ? count - at : mix_block;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t c = 0; c < width; c += floats) {
        const VF v = load(rows[i] + at + c) * scales[i];
        bad += v * 0.0f;
        store(block + i * mix_block + c, v);
      }
    sort_block(block, network, comparators);
    means_of_block(block, width, kept, out + at);
  }
  return all_zero(bad);
}

// ---- Nearest-neighbour mixing before a coordinate rule

// from − the Count rows, to y; or that times share, rounded, to out.
template <std::size_t Count, bool Last>
NS_INLINE void subtract_rows(const double* from, const double* widened, const std::uint32_t* left,
                             std::size_t width, double share, double* y, float* out) {
  const double* rows[Count + 1];
  for (std::size_t k = 0; k < Count; ++k) rows[k] = widened + left[k] * mix_block;
  for (std::size_t c = 0; c < width; c += doubles) {
    VD rest = load(from + c);
    for (std::size_t k = 0; k < Count; ++k) rest -= load(rows[k] + c);
    if (Last)
      store_narrowed(out + c, rest * share);
    else
      store(y + c, rest);
  }
}

// widened: the scaled rows, their sum, and room for one row more.
void mix(const float* const* rows, const float* scales, std::size_t n, std::size_t at, std::size_t width,
         const std::uint32_t* left_out, std::size_t f, double* widened, float* block) {
  double* sum = widened + n * mix_block;
  const double share = 1.0 / static_cast<double>(n - f);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t c = 0; c < mix_block; c += kernel_step) __builtin_prefetch(rows[i] + at + mix_block + c);
  for (std::size_t c = 0; c < width; c += floats) {
    VD low = {}, high = {};
    for (std::size_t i = 0; i < n; ++i) {
      const VF v = load(rows[i] + at + c) * scales[i];
      const VD a = widen_low(v), b = widen_high(v);
      store(widened + i * mix_block + c, a);
      store(widened + i * mix_block + c + doubles, b);
      low += a;
      high += b;
    }
    store(sum + c, low);
    store(sum + c + doubles, high);
  }
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t* left = left_out + i * f;
    double* const y = widened + (n + 1) * mix_block;
    const double* from = sum;
    // The rows left out, up to four at a time; what is left of the sum goes on from y.
    std::size_t k = 0;
    for (; k + 4 < f; k += 4, from = y)
      subtract_rows<4, false>(from, widened, left + k, width, 0, y, nullptr);
    float* to = block + i * mix_block;
    switch (f - k) {
      case 0: subtract_rows<0, true>(from, widened, left + k, width, share, nullptr, to); break;
      case 1: subtract_rows<1, true>(from, widened, left + k, width, share, nullptr, to); break;
      case 2: subtract_rows<2, true>(from, widened, left + k, width, share, nullptr, to); break;
      case 3: subtract_rows<3, true>(from, widened, left + k, width, share, nullptr, to); break;
      default: subtract_rows<4, true>(from, widened, left + k, width, share, nullptr, to); break;
    }
  }
}

void mixed_sorted(const float* const* rows, const float* scales, std::size_t n, std::size_t count,
                  const std::uint32_t* left_out, std::size_t f, Kept kept, const Comparator* network,
                  std::size_t comparators, double* widened, float* block, float* out) {
  const float* mixed[max_register_rows];
  float ones[max_register_rows];
  for (std::size_t i = 0; i < max_register_rows; ++i) {
    mixed[i] = block + i * mix_block;
    ones[i] = 1;
  }
  for (std::size_t at = 0; at < count; at += mix_block) {
    const std::size_t width = count - at < mix_block ? count - at : mix_block;
    mix(rows, scales, n, at, width, left_out, f, widened, block);
    if (n <= max_register_rows) {
      sorted_registers_of[n](mixed, ones, width, kept, out + at);
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
