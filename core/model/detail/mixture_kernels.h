// SwiGLU, sorting rows by expert and back.  See core/model/kernels.h.
#pragma once

#include "core/model/detail/common.h"

namespace neuroshard::model {
namespace {

void swiglu_forward(const void* gate_up, int64_t rows, int64_t width, void* activation) {
#pragma omp parallel for schedule(static) if (rows * width > least_parallel)
  for (int64_t r = 0; r < rows; ++r) {
    const Value* gate = values(gate_up) + r * 2 * width;
    const Value* up = gate + width;
    Value* out = values(activation) + r * width;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      const float g = widened(gate[i]);
      put(out[i], g * sigmoid(g) * widened(up[i]));
    }
  }
}

void swiglu_backward(void* gate_up, void* gradient_activation, const float* weight, int64_t rows,
                     int64_t width, float* gradient_weight) {
#pragma omp parallel for schedule(static) if (rows * width > least_parallel)
  for (int64_t r = 0; r < rows; ++r) {
    Value* gate = values(gate_up) + r * 2 * width;
    Value* up = gate + width;
    Value* gradient = values(gradient_activation) + r * width;
    const float w = weight[r];
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < width; ++i) {
      const float g = widened(gate[i]);
      const float u = widened(up[i]);
      const float s = sigmoid(g);
      const float silu = g * s;
      const float activation = silu * u;
      const float upstream = widened(gradient[i]);
      sum += upstream * activation;
      put(gate[i], w * upstream * u * (s + silu * (1.0f - s)));
      put(up[i], w * upstream * silu);
      put(gradient[i], w * activation);
    }
    gradient_weight[r] = sum;
  }
}

void narrow(const float* source, int64_t count, void* target) {
  Value* out = values(target);
#pragma omp parallel for simd schedule(static) if (count > least_parallel)
  for (int64_t i = 0; i < count; ++i) put(out[i], source[i]);
}

void widen(const void* source, int64_t count, float* target) {
  const Value* in = values(source);
#pragma omp parallel for simd schedule(static) if (count > least_parallel)
  for (int64_t i = 0; i < count; ++i) target[i] = widened(in[i]);
}

void gather_activations(const void* source, const int32_t* index, int64_t rows, int64_t width, void* target) {
#pragma omp parallel for schedule(static) if (rows * width > least_parallel)
  for (int64_t r = 0; r < rows; ++r) {
    memcpy(values(target) + r * width, values(source) + index[r] * width,
           static_cast<size_t>(width) * sizeof(Value));
  }
}

void gather_narrow(const float* source, const int32_t* index, int64_t rows, int64_t width, void* target) {
#pragma omp parallel for schedule(static) if (rows * width > least_parallel)
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = source + index[r] * width;
    Value* out = values(target) + r * width;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) put(out[i], in[i]);
  }
}

void gather_rows(const float* source, const int32_t* index, int64_t rows, int64_t width, float* target) {
#pragma omp parallel for schedule(static) if (rows * width > least_parallel)
  for (int64_t r = 0; r < rows; ++r) {
    memcpy(target + r * width, source + index[r] * width, static_cast<size_t>(width) * sizeof(float));
  }
}

void combine_rows(const void* source, const int32_t* index, const float* weight, int64_t choices,
                  int64_t rows, int64_t width, float* target) {
#pragma omp parallel for schedule(static) if (rows * width > least_parallel)
  for (int64_t r = 0; r < rows; ++r) {
    float* out = target + r * width;
    for (int64_t j = 0; j < choices; ++j) {
      const int32_t at = index[r * choices + j];
      if (at < 0) continue;
      const float w = weight != nullptr ? weight[r * choices + j] : 1.0f;
      const Value* in = values(source) + at * width;
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) out[i] += w * widened(in[i]);
    }
  }
}

void scatter_add_rows(const float* source, const int32_t* token, int64_t rows, int64_t width,
                      int64_t table_rows, float* table) {
#pragma omp parallel for schedule(static) if (rows * width > least_parallel)
  for (int64_t block = 0; block < reduction_blocks; ++block) {  // each block owns a range of the table
    const int64_t first = block_start(block, table_rows);
    const int64_t end = block_start(block + 1, table_rows);
    for (int64_t r = 0; r < rows; ++r) {
      if (token[r] < first || token[r] >= end) continue;
      const float* in = source + r * width;
      float* out = table + token[r] * width;
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) out[i] += in[i];
    }
  }
}

void scale_rows(const float* source, const float* weight, int64_t rows, int64_t width, float* target) {
#pragma omp parallel for schedule(static) if (rows * width > least_parallel)
  for (int64_t r = 0; r < rows; ++r) {
    const float w = weight[r];
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) target[r * width + i] = w * source[r * width + i];
  }
}

void dot_rows(const float* a, const float* b, int64_t rows, int64_t width, float* result) {
#pragma omp parallel for schedule(static) if (rows * width > least_parallel)
  for (int64_t r = 0; r < rows; ++r) result[r] = dot(a + r * width, b + r * width, width);
}

}  // namespace
}  // namespace neuroshard::model
