// RMSNorm and rotary positions.  See core/model/kernels.h.
#pragma once

#include "core/model/detail/row_vectors.h"

namespace neuroshard::model {
namespace {

inline void normalise_row(const float* x, const float* gain, float scale, int64_t width, Value* y) {
  for_vectors(width, [&](int64_t i, auto part) {
    store(y + i, load(x + i, part) * scale * load(gain + i, part), part);
  });
}

void rms_norm_apply(const float* x, const float* gain, const float* inverse, int64_t rows, int64_t width,
                    void* y) {
#pragma omp parallel for schedule(static) if (rows * width > least_parallel)
  for (int64_t r = 0; r < rows; ++r) {
    normalise_row(x + r * width, gain, inverse[r], width, values(y) + r * width);
  }
}

void rms_norm_forward(const float* x, const float* gain, float epsilon, int64_t rows, int64_t width, void* y,
                      float* inverse) {
#pragma omp parallel for schedule(static) if (rows * width > least_parallel)
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x + r * width;
    const float square = dot(in, in, width) / static_cast<float>(width);
    // A sum that overflows would become 0 here and pass for a healthy row; callers watch for what is not
    // finite.
    const float scale = square <= FLT_MAX ? 1.0f / sqrtf(square + epsilon) : NAN;
    inverse[r] = scale;
    normalise_row(in, gain, scale, width, values(y) + r * width);
  }
}

void rms_norm_backward(const float* gradient_y, const float* x, const float* gain, const float* inverse,
                       int64_t rows, int64_t width, float* gradient_x, float* gain_blocks, void* narrowed) {
  memset(gain_blocks, 0, static_cast<size_t>(reduction_blocks * width) * sizeof(float));
#pragma omp parallel for schedule(static) if (rows * width > least_parallel)
  for (int64_t block = 0; block < reduction_blocks; ++block) {
    float* partial = gain_blocks + block * width;
    for (int64_t r = block_start(block, rows); r < block_start(block + 1, rows); ++r) {
      const float* in = x + r * width;
      const float* upstream = gradient_y + r * width;
      float* out = gradient_x + r * width;
      const float scale = inverse[r];
      float projection = 0;
#pragma omp simd reduction(+ : projection)
      for (int64_t i = 0; i < width; ++i) {
        const float product = upstream[i] * in[i];
        partial[i] += product * scale;
        projection += product * gain[i];
      }
      const float correction = projection * scale * scale * scale / static_cast<float>(width);
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) out[i] += upstream[i] * gain[i] * scale - in[i] * correction;
      if (narrowed == nullptr) continue;
      Value* copy = values(narrowed) + r * width;
      for_vectors(width, [&](int64_t i, auto part) { store(copy + i, load(out + i, part), part); });
    }
  }
}

void add_blocks(const float* blocks, int64_t width, float* sum) {
  for (int64_t block = 0; block < reduction_blocks; ++block) {
    const float* partial = blocks + block * width;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) sum[i] += partial[i];
  }
}

void rope(void* x, int64_t rows, int64_t stride, int64_t heads, int64_t dim, int64_t period, int64_t offset,
          const float* cosine, const float* sine, float direction) {
  const int64_t half = dim / 2;
#pragma omp parallel for schedule(static) if (rows * heads * dim > least_parallel)
  for (int64_t r = 0; r < rows; ++r) {
    const float* c = cosine + (offset + r % period) * half;
    const float* s = sine + (offset + r % period) * half;
    for (int64_t head = 0; head < heads; ++head) {
      Value* low = values(x) + r * stride + head * dim;
      Value* high = low + half;
      for_vectors(half, [&](int64_t i, auto part) {
        const Vec a = load(low + i, part);
        const Vec b = load(high + i, part);
        const Vec keep = load(c + i, part);
        const Vec turn = direction * load(s + i, part);
        store(low + i, a * keep - b * turn, part);
        store(high + i, b * keep + a * turn, part);
      });
    }
  }
}

}  // namespace
}  // namespace neuroshard::model
