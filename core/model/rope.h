// Rotary position embedding (Su et al. 2021) in the half-split layout of Hugging Face:
//   (x_i, x_{i+D/2}) → (x_i·cos − x_{i+D/2}·sin, x_{i+D/2}·cos + x_i·sin), angle = position · theta^(−2i/D),
//   0 ≤ i < D/2
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/model/kernels.h"

namespace neuroshard::model {

// The angles' cosines and sines, computed once in double precision for the positions needed so far.
class RopeTable {
 public:
  RopeTable(std::int64_t head_dim, double theta);

  // Grows the table; throws OutOfMemory.
  void reserve(std::int64_t positions);
  // In place on the first `heads` heads of each of `rows` rows of stride `stride`; row r stands at position
  // offset + r mod period. direction −1 undoes it, which is also its backward pass.
  void apply(const Kernels& kernels, void* x, std::int64_t rows, std::int64_t stride, std::int64_t heads,
             std::int64_t period, std::int64_t offset, float direction);

 private:
  std::int64_t half_;
  double theta_;
  std::int64_t positions_ = 0;
  at::Tensor cosine_;  // [positions, D/2]
  at::Tensor sine_;
};

}  // namespace neuroshard::model
