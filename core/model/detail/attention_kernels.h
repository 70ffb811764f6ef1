// The softmax of attention.  See core/model/kernels.h.
#pragma once

#include "core/model/detail/common.h"

namespace neuroshard::model {
namespace {

void causal_softmax(float* scores, int64_t rows, int64_t columns, int64_t visible, float scale,
                    float* log_sum) {
  for (int64_t r = 0; r < rows; ++r) {
    float* row = scores + r * columns;
    const int64_t seen = visible + r < columns ? visible + r : columns;
    float highest = row[0];
#pragma omp simd reduction(max : highest)
    for (int64_t i = 0; i < seen; ++i) highest = row[i] > highest ? row[i] : highest;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < seen; ++i) {
      const float e = exp_fast(scale * (row[i] - highest));
      row[i] = e;
      sum += e;
    }
    const float inverse = 1.0f / sum;
#pragma omp simd
    for (int64_t i = 0; i < seen; ++i) row[i] *= inverse;
    for (int64_t i = seen; i < columns; ++i) row[i] = 0;
    log_sum[r] = scale * highest + logf(sum);
  }
}

void causal_probabilities(float* scores, int64_t rows, int64_t columns, int64_t visible, float scale,
                          const float* log_sum) {
  for (int64_t r = 0; r < rows; ++r) {
    float* row = scores + r * columns;
    const int64_t seen = visible + r < columns ? visible + r : columns;
    const float shift = log_sum[r];
#pragma omp simd
    for (int64_t i = 0; i < seen; ++i) row[i] = exp_fast(scale * row[i] - shift);
    for (int64_t i = seen; i < columns; ++i) row[i] = 0;
  }
}

void softmax_backward(const float* p, float* gradient_p, int64_t rows, int64_t columns, float scale,
                      const float* output, const float* gradient_output, int64_t stride, int64_t dim) {
  for (int64_t r = 0; r < rows; ++r) {
    const float delta = dot(output + r * stride, gradient_output + r * stride, dim);
    const float* probability = p + r * columns;
    float* gradient = gradient_p + r * columns;
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i) gradient[i] = probability[i] * (gradient[i] - delta) * scale;
  }
}

}  // namespace
}  // namespace neuroshard::model
