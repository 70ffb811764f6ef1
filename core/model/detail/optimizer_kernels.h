// Clipping and AdamW.  See core/model/kernels.h.
#pragma once

#include "core/model/detail/common.h"

namespace neuroshard::model {
namespace {

double sum_of_squares(const float* values, int64_t count) {
  double partial[reduction_blocks];
#pragma omp parallel for schedule(static) if (count > least_parallel)
  for (int64_t block = 0; block < reduction_blocks; ++block) {
    double sum = 0;
    const int64_t end = block_start(block + 1, count);
#pragma omp simd reduction(+ : sum)
    for (int64_t i = block_start(block, count); i < end; ++i) {
      sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    }
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
  constexpr int64_t chunk = 4096;
#pragma omp parallel for schedule(static) if (count > least_parallel)
  for (int64_t at = 0; at < count; at += chunk) {
    adamw_range(parameter + at, gradient + at, moment1 + at, moment2 + at,
                count - at < chunk ? count - at : chunk, scalars);
  }
}

}  // namespace
}  // namespace neuroshard::model
