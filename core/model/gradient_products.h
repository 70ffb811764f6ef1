// Gradients of weights in bf16: sums of aᵀ · b over the rows of activations.
//
// Here the rows are the inner dimension of a product, and neither operand lies as a product reads it. Both
// are copied once, a turned and b packed (packed_weight.h), into scratch that all tiles of the gradient then
// share; oneDNN left alone would do so again for each of its blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/kernels.h"
#include "core/model/tile_products.h"

namespace neuroshard::model {

// sum [m,n], fp32, += aᵀ · b, a [rows,m], b [rows,n].
struct GradientProduct {
  const Bf16* a = nullptr;
  const Bf16* b = nullptr;
  float* sum = nullptr;
  std::int64_t rows = 0;
  std::int64_t m = 0;
  std::int64_t n = 0;
};

// The products are independent of each other. Scratch: rows · (m + n) values for all of them together. Throws
// OutOfMemory.
void add_gradients(TileProducts& tiles, const Kernels& kernels, const std::vector<GradientProduct>& products);

}  // namespace neuroshard::model
