// Next-token cross-entropy.  See core/model/kernels.h.
#pragma once

#include "core/model/detail/row_vectors.h"

namespace neuroshard::model {
namespace {

void cross_entropy_forward(const float* logits, const int32_t* target, int64_t rows, int64_t width,
                           float* log_sum, float* loss) {
#pragma omp parallel for schedule(static) if (rows * width > least_parallel)
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = logits + r * width;
    const float highest = largest(row, width);
    Vec sum = {};
    for_vectors(width,
                [&](int64_t i, auto part) { sum += exp_fast(load(row + i, part, -FLT_MAX) - highest); });
    log_sum[r] = highest + logf(sum_of(sum));
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
    const float hit = exp_fast(all(row[target[r]] - shift))[0] - 1.0f;
    for_vectors(width, [&](int64_t i, auto part) {
      store(out + i, exp_of_activation(load(row + i, part) - shift), part);
    });
    put(out[target[r]], hit);
  }
}

}  // namespace
}  // namespace neuroshard::model
