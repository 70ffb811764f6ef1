// The passes of aggregation over memory, one table per instruction set, compiled from one source
// (aggregation_kernels_body.h). All tables give the same bits: coordinates don't meet in any of them but the
// Gram matrix, whose sums have eight fixed lanes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/outer/aggregate.h"

namespace neuroshard::outer::detail {

// Kernels other than gram and squares take a count of coordinates that is a multiple of this.
inline constexpr std::size_t kernel_step = 16;
// Coordinates whose products are summed in lanes before the sum joins the total.
inline constexpr std::size_t gram_chunk = 65536;
// Coordinates widened at a time.
inline constexpr std::size_t gram_block = 128;
inline constexpr std::size_t mix_block = 64;
// Up to this many rows are sorted in registers.
inline constexpr std::size_t max_register_rows = 16;

constexpr std::size_t rows_of_gram(std::size_t n) {
  return (n + 3) / 4 * 4;
}

// The range that a coordinate rule keeps of n sorted values: the mean of those at [low, high).
struct Kept {
  std::size_t low, high;
};

// Compare rows a and b, the smaller to a. A list of these sorts (Batcher's merge exchange, Knuth 5.2.2M).
struct Comparator {
  std::uint16_t a, b;
};

struct AggregationKernels {
  // gram [n, n] += the products of the rows over `count` ≤ gram_chunk coordinates, upper triangle and
  // diagonal. Lane l takes coordinates ≡ l mod 8 in order; then ((0+4)+(2+6))+((1+5)+(3+7)). widened:
  // rows_of_gram(n) · gram_block doubles; lanes: rows_of_gram(n)² · 8 doubles.
  void (*gram)(const float* const* rows, std::size_t n, std::size_t count, double* gram, double* widened,
               double* lanes);

  // sums [n] += each row's diagonal element of gram, the same bits.
  void (*squares)(const float* const* rows, std::size_t n, std::size_t count, double* sums);

  // out = Σ weight·row in fp64, in the order of the rows. False when a sum is not finite.
  bool (*combine)(const float* const* rows, const double* weights, std::size_t n, std::size_t count,
                  float* out);

  // Of each coordinate's values scale·row (fp32), sorted, the mean of those kept: their fp64 sum from the
  // least on, times 1/(high − low). False when a value is not finite. `network` sorts n rows; it and block (n
  // · mix_block floats) are needed beyond max_register_rows only.
  bool (*sorted)(const float* const* rows, const float* scales, std::size_t n, std::size_t count, Kept kept,
                 const Comparator* network, std::size_t comparators, float* block, float* out);

  // The same over mixed rows: y_i = (Σ scale·row in order − those left out for i, in order) / (n − f), fp64
  // rounded to fp32. left_out [n, f] indices; widened: n · kernel_step doubles; block as above, always.
  void (*mixed_sorted)(const float* const* rows, const float* scales, std::size_t n, std::size_t count,
                       const std::uint32_t* left_out, std::size_t f, Kept kept, const Comparator* network,
                       std::size_t comparators, double* widened, float* block, float* out);
};

extern const AggregationKernels aggregation_kernels_portable;
#if defined(__x86_64__)
extern const AggregationKernels aggregation_kernels_avx2;
extern const AggregationKernels aggregation_kernels_avx512;
#endif

InstructionSet best_instruction_set();
// The set has to be supported.
const AggregationKernels& kernels_of(InstructionSet set);

}  // namespace neuroshard::outer::detail
