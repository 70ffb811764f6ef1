// The kernels' code, compiled once per instruction set: the including file defines NS_KERNEL_TABLE as the
// table's name. See core/model/kernels.h for what each does and why only C headers may be included.
#include <float.h>   // NOLINT
#include <math.h>    // NOLINT
#include <string.h>  // NOLINT

#include "core/model/kernels.h"

namespace neuroshard::model {
namespace {

// Values below which waking the other threads costs more than they save.
constexpr int64_t least_parallel = 8192;

inline int64_t block_start(int64_t block, int64_t rows) {
  return rows * block / reduction_blocks;
}

// exp(x) to about 2 units in the last place, branch-free so that loops over it vectorise: 2^n · polynomial on
// [−ln2/2, ln2/2] (coefficients of Cephes' expf). Saturates instead of overflowing.
inline float exp_fast(float x) {
  x = x < -87.0f ? -87.0f : x;
  x = x > 88.0f ? 88.0f : x;
  const float n = __builtin_rintf(x * 1.44269504088896341f);
  float r = x - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const int32_t bits = (static_cast<int32_t>(n) + 127) << 23;
  float power;
  memcpy(&power, &bits, sizeof power);
  return p * power;
}

inline float sigmoid(float x) {
  return 1.0f / (1.0f + exp_fast(-x));
}

inline float dot(const float* a, const float* b, int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

void rms_norm_apply(const float* x, const float* gain, const float* inverse, int64_t rows, int64_t width,
                    float* y) {
#pragma omp parallel for schedule(static) if (rows * width > least_parallel)
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x + r * width;
    float* out = y + r * width;
    const float scale = inverse[r];
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) out[i] = in[i] * scale * gain[i];
  }
}

void rms_norm_forward(const float* x, const float* gain, float epsilon, int64_t rows, int64_t width, float* y,
                      float* inverse) {
#pragma omp parallel for schedule(static) if (rows * width > least_parallel)
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x + r * width;
    float* out = y + r * width;
    const float square = dot(in, in, width) / static_cast<float>(width);
    // A sum that overflows would become 0 here and pass for a healthy row; callers watch for what is not
    // finite.
    const float scale = square <= FLT_MAX ? 1.0f / sqrtf(square + epsilon) : NAN;
    inverse[r] = scale;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) out[i] = in[i] * scale * gain[i];
  }
}

void rms_norm_backward(const float* gradient_y, const float* x, const float* gain, const float* inverse,
                       int64_t rows, int64_t width, float* gradient_x, float* gradient_gain, float* scratch) {
  memset(scratch, 0, static_cast<size_t>(reduction_blocks * width) * sizeof(float));
#pragma omp parallel for schedule(static) if (rows * width > least_parallel)
  for (int64_t block = 0; block < reduction_blocks; ++block) {
    float* partial = scratch + block * width;
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
    }
  }
  for (int64_t block = 0; block < reduction_blocks; ++block) {
    const float* partial = scratch + block * width;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) gradient_gain[i] += partial[i];
  }
}

void rope(float* x, int64_t rows, int64_t stride, int64_t heads, int64_t dim, int64_t period, int64_t offset,
          const float* cosine, const float* sine, float direction) {
  const int64_t half = dim / 2;
#pragma omp parallel for schedule(static) if (rows * heads * dim > least_parallel)
  for (int64_t r = 0; r < rows; ++r) {
    const float* c = cosine + (offset + r % period) * half;
    const float* s = sine + (offset + r % period) * half;
    for (int64_t head = 0; head < heads; ++head) {
      float* low = x + r * stride + head * dim;
      float* high = low + half;
#pragma omp simd
      for (int64_t i = 0; i < half; ++i) {
        const float a = low[i];
        const float b = high[i];
        const float turn = direction * s[i];
        low[i] = a * c[i] - b * turn;
        high[i] = b * c[i] + a * turn;
      }
    }
  }
}

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

void swiglu_forward(const float* gate_up, int64_t rows, int64_t width, float* activation) {
#pragma omp parallel for schedule(static) if (rows * width > least_parallel)
  for (int64_t r = 0; r < rows; ++r) {
    const float* gate = gate_up + r * 2 * width;
    const float* up = gate + width;
    float* out = activation + r * width;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) out[i] = gate[i] * sigmoid(gate[i]) * up[i];
  }
}

void swiglu_backward(float* gate_up, float* gradient_activation, const float* weight, int64_t rows,
                     int64_t width, float* gradient_weight) {
#pragma omp parallel for schedule(static) if (rows * width > least_parallel)
  for (int64_t r = 0; r < rows; ++r) {
    float* gate = gate_up + r * 2 * width;
    float* up = gate + width;
    float* gradient = gradient_activation + r * width;
    const float w = weight[r];
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < width; ++i) {
      const float g = gate[i];
      const float s = sigmoid(g);
      const float silu = g * s;
      const float activation = silu * up[i];
      const float upstream = gradient[i];
      sum += upstream * activation;
      gate[i] = w * upstream * up[i] * (s + silu * (1.0f - s));
      up[i] = w * upstream * silu;
      gradient[i] = w * activation;
    }
    gradient_weight[r] = sum;
  }
}

void gather_rows(const float* source, const int32_t* index, int64_t rows, int64_t width, float* target) {
#pragma omp parallel for schedule(static) if (rows * width > least_parallel)
  for (int64_t r = 0; r < rows; ++r) {
    memcpy(target + r * width, source + index[r] * width, static_cast<size_t>(width) * sizeof(float));
  }
}

void combine_rows(const float* source, const int32_t* index, const float* weight, int64_t choices,
                  int64_t rows, int64_t width, float* target) {
#pragma omp parallel for schedule(static) if (rows * width > least_parallel)
  for (int64_t r = 0; r < rows; ++r) {
    float* out = target + r * width;
    for (int64_t j = 0; j < choices; ++j) {
      const int32_t at = index[r * choices + j];
      if (at < 0) continue;
      const float w = weight != nullptr ? weight[r * choices + j] : 1.0f;
      const float* in = source + at * width;
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) out[i] += w * in[i];
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

void cross_entropy_backward(float* logits, const int32_t* target, const float* log_sum, int64_t rows,
                            int64_t width) {
#pragma omp parallel for schedule(static) if (rows * width > least_parallel)
  for (int64_t r = 0; r < rows; ++r) {
    float* row = logits + r * width;
    if (target[r] < 0) {
      memset(row, 0, static_cast<size_t>(width) * sizeof(float));
      continue;
    }
    const float shift = log_sum[r];
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) row[i] = exp_fast(row[i] - shift);
    row[target[r]] -= 1.0f;
  }
}

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

void adamw(float* parameter, float* gradient, float* moment1, float* moment2, int64_t count, float scale,
           float keep, float step_size, float beta1, float beta2, float root_correction, float epsilon) {
#pragma omp parallel for simd schedule(static) if (count > least_parallel)
  for (int64_t i = 0; i < count; ++i) {
    const float g = gradient[i] * scale;
    const float m = beta1 * moment1[i] + (1.0f - beta1) * g;
    const float v = beta2 * moment2[i] + (1.0f - beta2) * g * g;
    moment1[i] = m;
    moment2[i] = v;
    gradient[i] = 0;
    parameter[i] = parameter[i] * keep - step_size * m / (sqrtf(v) * root_correction + epsilon);
  }
}

}  // namespace

extern const Kernels NS_KERNEL_TABLE = {
    rms_norm_forward,
    rms_norm_apply,
    rms_norm_backward,
    rope,
    causal_softmax,
    causal_probabilities,
    softmax_backward,
    swiglu_forward,
    swiglu_backward,
    gather_rows,
    combine_rows,
    scatter_add_rows,
    scale_rows,
    dot_rows,
    cross_entropy_forward,
    cross_entropy_backward,
    sum_of_squares,
    adamw,
};

}  // namespace neuroshard::model
