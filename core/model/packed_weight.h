// bf16 copies of a weight W [O,I] in the order in which a product reads its second operand, made once per
// change of the weight and not once per product.
//
// The layout is the one that oneDNN calls BA16a64b2a. A second operand B [K,N] is cut into blocks of 64
// columns; within a block the rows go by pairs: element (k, n) stands at
//   ((n / 64 · Kp/2 + k/2) · 64 + n % 64) · 2 + k % 2,   Kp = K rounded up to 32
// and everything beyond K and N is zero. A vector instruction then multiplies 2 × 16 neighbours and adds the
// pairs.
//
//   forward:  B = Wᵀ, K = I, N = O, for y = x·Wᵀ        backward: B = W, K = O, N = I, for dx = dy·W
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/model/kernels.h"

namespace neuroshard::model {

struct PackedWeight {
  std::int64_t rows = 0;     // O
  std::int64_t columns = 0;  // I
  at::Tensor forward;        // [packed_count(I, O)] bf16
  at::Tensor backward;       // [packed_count(O, I)] bf16; undefined when not trainable
};

// Zeros. Throws OutOfMemory.
PackedWeight make_packed_weight(std::int64_t rows, std::int64_t columns, bool trainable);
// weight: [rows, columns] fp32.
void pack(const Kernels& kernels, const float* weight, PackedWeight& packed);

}  // namespace neuroshard::model
