// Next-token cross-entropy.  See core/model/kernels.h.
#pragma once

#include "core/model/detail/common.h"

namespace neuroshard::model {
namespace {

void cross_entropy_forward(const float* logits, const int32_t* target, int64_t rows, int64_t width,
                           float* log_sum, float* loss) {
#pragma omp parallel for schedule(static) if (rows * width > least_parallel)
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = logits + r * width;
    float highest = row[0];
#pragma omp simd reduction(max : highest)
    for (int64_t i = 0; i < width; ++i) highest = row[i] > highest ? row[i] : highest;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < width; ++i) sum += exp_fast(row[i] - highest);
    log_sum[r] = highest + logf(sum);
    loss[r] = target[r] < 0 ? 0.0f : log_sum[r] - row[target[r]];
  }
}

void cross_entropy_backward(const float* logits, const int32_t* target, const float* log_sum, int64_t rows,
                            int64_t width, void* gradient) {
#pragma omp parallel for schedule(static) if (rows * width > least_parallel)
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = logits + r * width;
    Value* out = values(gradient) + r * width;
    if (target[r] < 0) {
      memset(out, 0, static_cast<size_t>(width) * sizeof(Value));
      continue;
    }
    const float shift = log_sum[r];
    const float hit = exp_fast(row[target[r]] - shift) - 1.0f;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) put(out[i], exp_fast(row[i] - shift));
    put(out[target[r]], hit);
  }
}

}  // namespace
}  // namespace neuroshard::model
