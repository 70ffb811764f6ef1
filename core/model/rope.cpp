#include "core/model/rope.h"

#include <algorithm>
#include <cmath>

#include "core/model/tensors.h"

namespace neuroshard::model {

RopeTable::RopeTable(std::int64_t head_dim, double theta) : half_(head_dim / 2), theta_(theta) {}

void RopeTable::reserve(std::int64_t positions) {
  if (positions <= positions_) return;
  positions = std::max(positions, 2 * positions_);  // generation asks for one more at a time
  at::Tensor cosine = make_floats({positions, half_});
  at::Tensor sine = make_floats({positions, half_});
  for (std::int64_t i = 0; i < half_; ++i) {
    const double frequency = std::pow(theta_, -static_cast<double>(i) / static_cast<double>(half_));
    for (std::int64_t position = 0; position < positions; ++position) {
      const double angle = static_cast<double>(position) * frequency;
      floats(cosine)[position * half_ + i] = static_cast<float>(std::cos(angle));
      floats(sine)[position * half_ + i] = static_cast<float>(std::sin(angle));
    }
  }
  cosine_ = cosine;
  sine_ = sine;
  positions_ = positions;
}

void RopeTable::apply(const Kernels& kernels, void* x, std::int64_t rows, std::int64_t stride,
                      std::int64_t heads, std::int64_t period, std::int64_t offset, float direction) {
  reserve(offset + std::min(rows, period));
  kernels.rope(x, rows, stride, heads, 2 * half_, period, offset, floats(cosine_), floats(sine_), direction);
}

}  // namespace neuroshard::model
