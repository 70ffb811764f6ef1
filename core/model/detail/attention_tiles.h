// The small products of attention: C [rows, columns] = A · B with C's tile in registers, A read value by
// value and B vector by vector. Operands lie in scratch, fp32, columns padded to whole vectors.
#pragma once

#include "core/model/detail/vectors.h"

namespace neuroshard::model {
namespace {

#if defined(__AVX512F__)
constexpr int tile_vectors = 4;
#else
constexpr int tile_vectors = 2;
#endif

// How a product runs over its depth. Single: fp32, one value a step.
struct Single {
  static int64_t steps(int64_t depth) { return depth; }
  static Vec add(Vec sum, Vec a, Vec b) { return sum + a * b; }
};
#ifdef NS_KERNEL_BFLOAT16
// Two bf16 values a step, side by side in 32 bits, which pass for one float where they are only moved. An odd
// depth ends in a pair whose second values must multiply to 0.
struct Paired {
  static int64_t steps(int64_t depth) { return (depth + 1) / 2; }
  static Vec add(Vec sum, Vec a, Vec b) {
    return (Vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
  }
};
#endif

// How the product treats the previous values of C.
enum class Previous { Ignored, Added, Scaled };

struct TileOperands {
  const float* a;
  int64_t a_stride;
  const float* b;
  int64_t b_stride;
  int64_t steps;
  float* c;
  int64_t c_stride;
  Previous previous;
  const float* factor;  // of each row of C's previous values, when Scaled
};

// Strides count floats, or pairs. Turned: A(row, k) = a[k · a_stride + row], otherwise a[row · a_stride + k].
template <class Arithmetic, int rows, int vectors, bool turned>
__attribute__((noinline)) void multiply_tile(const TileOperands& operands) {
  Vec sum[rows][vectors];
  float* c = operands.c;
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) sum[r][v] = Vec{};
  }
  if (operands.previous != Previous::Ignored) {
    const bool scaled = operands.previous == Previous::Scaled;
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const float factor = scaled ? operands.factor[r] : 1.0f;
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sum[r][v] = load(c + r * operands.c_stride + v * lanes) * factor;
    }
  }
  const float* a = operands.a;
  const float* b = operands.b;
  const int64_t a_stride = operands.a_stride;
  const int64_t b_stride = operands.b_stride;
  for (int64_t k = 0; k < operands.steps; ++k) {
    Vec row[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) row[v] = load(b + v * lanes);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const Vec value = all(turned ? a[r] : a[r * a_stride]);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sum[r][v] = Arithmetic::add(sum[r][v], value, row[v]);
    }
    a += turned ? a_stride : 1;
    b += b_stride;
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) store(c + r * operands.c_stride + v * lanes, sum[r][v]);
  }
}

// All columns of `rows` rows of C; vectors: their number.
template <class Arithmetic, int rows, bool turned>
void multiply_rows(TileOperands operands, int64_t vectors) {
  for (; vectors >= tile_vectors; vectors -= tile_vectors) {
    multiply_tile<Arithmetic, rows, tile_vectors, turned>(operands);
    operands.b += tile_vectors * lanes;
    operands.c += tile_vectors * lanes;
  }
#if defined(__AVX512F__)
  if (vectors == 3) multiply_tile<Arithmetic, rows, 3, turned>(operands);
  if (vectors == 2) multiply_tile<Arithmetic, rows, 2, turned>(operands);
#endif
  if (vectors == 1) multiply_tile<Arithmetic, rows, 1, turned>(operands);
}

template <int n>
struct Rows {
  static constexpr int count = n;
};

// Cuts rows into groups that fill the registers: body(first, Rows<count>).
template <typename Body>
inline void for_row_groups(int64_t rows, const Body& body) {
  int64_t row = 0;
  for (; rows - row >= 6; row += 6) body(row, Rows<6>{});
  for (; rows - row >= 4; row += 4) body(row, Rows<4>{});
  for (; rows - row >= 2; row += 2) body(row, Rows<2>{});
  if (rows > row) body(row, Rows<1>{});
}

}  // namespace
}  // namespace neuroshard::model
