// bf16 copies in the order in which products read them. See core/model/kernels.h and packed_weight.h.
#pragma once

#include "core/model/detail/common.h"
#include "core/model/detail/optimizer_kernels.h"

#ifdef NS_KERNEL_BFLOAT16

namespace neuroshard::model {
namespace {

// The forward copy of `count` ≤ 64 rows of a weight, which are one block of it: element (i, o) =
// weight[o][i], pairs of i side by side.
void pack_slab_forward(const float* weight, int64_t count, int64_t columns, Bf16* block) {
  for (int64_t o = 0; o < count; ++o) {
    for (int64_t i = 0; i < columns; ++i) {
      put(block[((i / 2) * packed_columns + o) * 2 + i % 2], weight[o * columns + i]);
    }
  }
}

// The backward copy of the same rows, first + 0 … count: element (o, i) = weight[o][i], pairs of o side by
// side.
void pack_slab_backward(const float* weight, int64_t first, int64_t count, int64_t columns,
                        int64_t padded_rows, Bf16* packed) {
  for (int64_t o = 0; o < count; ++o) {
    const int64_t pair = (first + o) / 2;
    for (int64_t i = 0; i < columns; ++i) {
      const int64_t block = i / packed_columns * padded_rows / 2;
      put(packed[((block + pair) * packed_columns + i % packed_columns) * 2 + o % 2],
          weight[o * columns + i]);
    }
  }
}

void pack_slab(const float* weight, int64_t first, int64_t rows, int64_t columns, Bf16* forward,
               Bf16* backward) {
  const int64_t count = rows - first < packed_columns ? rows - first : packed_columns;
  pack_slab_forward(weight, count, columns, forward + first * padded_rows_of(columns));
  if (backward != nullptr) {
    pack_slab_backward(weight, first, count, columns, padded_rows_of(rows), backward);
  }
}

void pack_weight(const float* weight, int64_t rows, int64_t columns, Bf16* forward, Bf16* backward) {
#pragma omp parallel for schedule(static) if (rows * columns > least_parallel)
  for (int64_t first = 0; first < rows; first += packed_columns) {
    pack_slab(weight + first * columns, first, rows, columns, forward, backward);
  }
}

// A slab of 64 rows is contiguous in the weight and one block of the forward copy: stepped and packed while
// its new values are in the cache.
void adamw_packed(float* parameter, float* gradient, float* moment1, float* moment2, int64_t rows,
                  int64_t columns, const AdamwScalars& scalars, Bf16* forward, Bf16* backward) {
#pragma omp parallel for schedule(static) if (rows * columns > least_parallel)
  for (int64_t first = 0; first < rows; first += packed_columns) {
    const int64_t count = rows - first < packed_columns ? rows - first : packed_columns;
    const int64_t at = first * columns;
    adamw_range(parameter + at, gradient + at, moment1 + at, moment2 + at, count * columns, scalars);
    pack_slab(parameter + at, first, rows, columns, forward, backward);
  }
}

void transpose_columns(const Bf16* source, int64_t rows, int64_t columns, int64_t first, int64_t count,
                       int64_t padded_rows, Bf16* target) {
  for (int64_t c = 0; c < count; ++c) {
    for (int64_t r = 0; r < padded_rows; ++r) {
      target[c * padded_rows + r] = r < rows ? source[r * columns + first + c] : Bf16{0};
    }
  }
}

void pack_columns(const Bf16* source, int64_t rows, int64_t columns, int64_t first, int64_t padded_rows,
                  Bf16* target) {
  for (int64_t r = 0; r < padded_rows; ++r) {
    for (int64_t c = 0; c < packed_columns; ++c) {
      const bool inside = r < rows && first + c < columns;
      target[(r / 2 * packed_columns + c) * 2 + r % 2] = inside ? source[r * columns + first + c] : Bf16{0};
    }
  }
}

}  // namespace
}  // namespace neuroshard::model

#endif  // NS_KERNEL_BFLOAT16
