// Clipping and AdamW.  See core/model/kernels.h.
#pragma once

#include "core/model/detail/row_vectors.h"

namespace neuroshard::model {
namespace {

// In double, so that no gradient is too large or too small to be squared; four sums at a time, because each
// would wait for its own last addition.
inline double sum_of_squares_serial(const float* values, int64_t count) {
  typedef float Floats __attribute__((vector_size(lanes * 2)));
  typedef double Doubles __attribute__((vector_size(lanes * 4)));
  constexpr int64_t width = lanes / 2;
  Doubles sums[4] = {};
  int64_t i = 0;
  for (; i + 4 * width <= count; i += 4 * width) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      Floats narrow;
      memcpy(&narrow, values + i + k * width, sizeof narrow);
      const Doubles wide = __builtin_convertvector(narrow, Doubles);
      sums[k] += wide * wide;
    }
  }
  const Doubles both = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  double sum = 0;
  for (int64_t k = 0; k < width; ++k) sum += both[k];
  for (; i < count; ++i) sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return sum;
}

double sum_of_squares(const float* values, int64_t count) {
  double partial[reduction_blocks];
#pragma omp parallel for schedule(static) if (count > least_parallel)
  for (int64_t block = 0; block < reduction_blocks; ++block) {
    const int64_t first = block_start(block, count);
    const int64_t end = block_start(block + 1, count);
    double sum = 0;
    for (int64_t at = first; at < end; at += range)
      sum += sum_of_squares_serial(values + at, smaller(range, end - at));
    partial[block] = sum;
  }
  double total = 0;
  for (double value : partial) total += value;
  return total;
}

inline void adamw_range(float* parameter, float* gradient, float* moment1, float* moment2, int64_t count,
                        const AdamwScalars& scalars) {
  const AdamwScalars s = scalars;
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float g = gradient[i] * s.scale;
    const float m = s.beta1 * moment1[i] + (1.0f - s.beta1) * g;
    const float v = s.beta2 * moment2[i] + (1.0f - s.beta2) * g * g;
    moment1[i] = m;
    moment2[i] = v;
    gradient[i] = 0;
    parameter[i] = parameter[i] * s.keep - s.step_size * m / (sqrtf(v) * s.root_correction + s.epsilon);
  }
}

void adamw(float* parameter, float* gradient, float* moment1, float* moment2, int64_t count,
           const AdamwScalars& scalars) {
#pragma omp parallel for schedule(static) if (count > least_parallel)
  for (int64_t at = 0; at < count; at += range) {
    adamw_range(parameter + at, gradient + at, moment1 + at, moment2 + at, smaller(range, count - at),
                scalars);
  }
}

}  // namespace
}  // namespace neuroshard::model
