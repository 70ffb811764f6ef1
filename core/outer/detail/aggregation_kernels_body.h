// The source of all kernel tables; NS_AGGREGATION_TABLE names this one. Nothing from the standard library is
// called here: an inline function of it, compiled for a newer processor, might be the one that the linker
// keeps for everybody.
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
    for (; c + doubles <= count; c += doubles) store(to + c, load_widened(from + c));
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

// Two rows by four, `doubles` of the eight lanes at a time: eight sums in flight, which is what the latency
// of an addition asks for.
NS_INLINE void gram_tile(const double* a, const double* b, std::size_t count, double* lanes,
                         std::size_t lanes_stride) {
  for (std::size_t part = 0; part < 8; part += doubles) {
    VD sum[2][4];
    for (std::size_t i = 0; i < 2; ++i)
      for (std::size_t j = 0; j < 4; ++j) sum[i][j] = load(lanes + i * lanes_stride + j * 8 + part);
    for (std::size_t c = part; c < count; c += 8) {
      const VD a0 = load(a + c), a1 = load(a + gram_block + c);
      for (std::size_t j = 0; j < 4; ++j) {
        const VD bj = load(b + j * gram_block + c);
        sum[0][j] = add_exact_product(sum[0][j], a0, bj);
        sum[1][j] = add_exact_product(sum[1][j], a1, bj);
      }
    }
    for (std::size_t i = 0; i < 2; ++i)
      for (std::size_t j = 0; j < 4; ++j) store(lanes + i * lanes_stride + j * 8 + part, sum[i][j]);
  }
}

void gram(const float* const* rows, std::size_t n, std::size_t count, double* gram, double* widened,
          double* lanes) {
  const std::size_t padded_rows = rows_of_gram(n), stride = padded_rows * 8;
  for (std::size_t i = 0; i < padded_rows * stride; ++i) lanes[i] = 0;
  for (std::size_t at = 0; at < count; at += gram_block) {
    const std::size_t left = count - at;
    const std::size_t width = widen_block(rows, n, at, left < gram_block ? left : gram_block, widened);
    for (std::size_t i = 0; i < padded_rows; i += 2)
      for (std::size_t j = i / 4 * 4; j < padded_rows; j += 4)
        gram_tile(widened + i * gram_block, widened + j * gram_block, width, lanes + i * stride + j * 8,
                  stride);
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

// widened: the scaled rows, then their sum.
void mix(const float* const* rows, const float* scales, std::size_t n, std::size_t at, std::size_t width,
         const std::uint32_t* left_out, std::size_t f, double* widened, float* block) {
  double* sum = widened + n * mix_block;
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
  const double share = 1.0 / static_cast<double>(n - f);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t c = 0; c < width; c += doubles) {
      VD y = load(sum + c);
      for (std::size_t k = 0; k < f; ++k) y -= load(widened + left_out[i * f + k] * mix_block + c);
      store_narrowed(block + i * mix_block + c, y * share);
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
