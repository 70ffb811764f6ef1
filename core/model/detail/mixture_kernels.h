// SwiGLU, sorting rows by expert and back.  See core/model/kernels.h.
#pragma once

#include "core/model/detail/row_vectors.h"

namespace neuroshard::model {
namespace {

void swiglu_forward(const void* gate_up, int64_t rows, int64_t width, void* activation) {
#pragma omp parallel for schedule(static) if (rows * width > least_parallel)
  for (int64_t r = 0; r < rows; ++r) {
    const Value* gate = values(gate_up) + r * 2 * width;
    const Value* up = gate + width;
    Value* out = values(activation) + r * width;
    for_vectors(width, [&](int64_t i, auto part) {
      const Vec g = load(gate + i, part);
      store(out + i, g * sigmoid(g) * load(up + i, part), part);
    });
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
    Vec sum = {};
    for_vectors(width, [&](int64_t i, auto part) {
      const Vec g = load(gate + i, part);
      const Vec u = load(up + i, part);
      const Vec upstream = load(gradient + i, part);
      const Vec s = sigmoid(g);
      const Vec silu = g * s;
      const Vec activation = silu * u;
      sum += upstream * activation;
      store(gate + i, w * upstream * u * (s + silu * (1.0f - s)), part);
      store(up + i, w * upstream * silu, part);
      store(gradient + i, w * activation, part);
    });
    gradient_weight[r] = sum_of(sum);
  }
}

void narrow(const float* source, int64_t count, void* target) {
#pragma omp parallel for schedule(static) if (count > least_parallel)
  for (int64_t at = 0; at < count; at += range) {
    Value* out = values(target) + at;
    const float* in = source + at;
    for_vectors(smaller(range, count - at),
                [&](int64_t i, auto part) { store(out + i, load(in + i, part), part); });
  }
}

void widen(const void* source, int64_t count, float* target) {
#pragma omp parallel for schedule(static) if (count > least_parallel)
  for (int64_t at = 0; at < count; at += range) {
    float* out = target + at;
    const Value* in = values(source) + at;
    for_vectors(smaller(range, count - at),
                [&](int64_t i, auto part) { store(out + i, load(in + i, part), part); });
  }
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
    for_vectors(width, [&](int64_t i, auto part) { store(out + i, load(in + i, part), part); });
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
