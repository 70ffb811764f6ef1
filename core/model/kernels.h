// Elementwise and row-wise kernels of the CPU, one table per instruction set (SSE2, AVX2, AVX-512), chosen
// once at start. Matrix products are not here: they go to oneDNN (products.h).
//
// All arrays are row-major fp32. Every kernel spreads its rows over the OpenMP pool unless marked "serial",
// and gives the same bits for the same inputs whatever the number of threads: no atomics, partial sums over
// fixed blocks. "adds" marks outputs that are added to; the others are overwritten.
//
// Only C headers here: the tables are compiled with wider instruction sets, and an inline function of the
// standard library that the linker picked from one of them would not run on older machines.
#pragma once

#include <stdint.h>  // NOLINT: see above

namespace neuroshard::model {

// Rows are cut into this many blocks wherever a sum runs over rows.
constexpr int64_t reduction_blocks = 32;

struct Kernels {
  // y = x · inverse · gain with inverse = 1/sqrt(mean(x²) + epsilon), per row; NaN when mean(x²) overflows.
  void (*rms_norm_forward)(const float* x, const float* gain, float epsilon, int64_t rows, int64_t width,
                           float* y, float* inverse);
  // y again from a kept inverse.
  void (*rms_norm_apply)(const float* x, const float* gain, const float* inverse, int64_t rows, int64_t width,
                         float* y);
  // gradient_x adds, gradient_gain adds. scratch: [reduction_blocks, width].
  void (*rms_norm_backward)(const float* gradient_y, const float* x, const float* gain, const float* inverse,
                            int64_t rows, int64_t width, float* gradient_x, float* gradient_gain,
                            float* scratch);

  // Rotates `heads` adjacent heads of width `dim` at the start of each row of stride `stride`, in place. Row
  // r stands at position offset + r mod period. cosine, sine: [positions, dim/2]. direction +1 forward, -1
  // backward.
  void (*rope)(float* x, int64_t rows, int64_t stride, int64_t heads, int64_t dim, int64_t period,
               int64_t offset, const float* cosine, const float* sine, float direction);

  // Serial. scores [rows, columns] → probabilities; row i sees its first visible + i columns, the others
  // become 0. log_sum[i] = log Σ exp(scale · score).
  void (*causal_softmax)(float* scores, int64_t rows, int64_t columns, int64_t visible, float scale,
                         float* log_sum);
  // Serial. The probabilities again from kept log_sum.
  void (*causal_probabilities)(float* scores, int64_t rows, int64_t columns, int64_t visible, float scale,
                               const float* log_sum);
  // Serial. gradient_p → gradient of the unscaled scores: p · (gradient_p − delta) · scale, delta[i] = Σ
  // output · gradient of the output over `dim` columns of stride `stride`.
  void (*softmax_backward)(const float* p, float* gradient_p, int64_t rows, int64_t columns, float scale,
                           const float* output, const float* gradient_output, int64_t stride, int64_t dim);

  // activation = silu(gate) · up for rows [gate | up] of 2·width.
  void (*swiglu_forward)(const float* gate_up, int64_t rows, int64_t width, float* activation);
  // gate_up is replaced by its gradient, gradient_activation by weight · activation.
  // gradient_activation comes in without the row's weight; gradient_weight[row] = Σ gradient_activation ·
  // activation.
  void (*swiglu_backward)(float* gate_up, float* gradient_activation, const float* weight, int64_t rows,
                          int64_t width, float* gradient_weight);

  // target[r] = source[index[r]]
  void (*gather_rows)(const float* source, const int32_t* index, int64_t rows, int64_t width, float* target);
  // target[r] adds Σ_j weight[r,j] · source[index[r,j]] over the `choices` entries that are not −1; weight
  // may be null (1).
  void (*combine_rows)(const float* source, const int32_t* index, const float* weight, int64_t choices,
                       int64_t rows, int64_t width, float* target);
  // table[token[r]] adds source[r], rows in order whatever the number of threads.
  void (*scatter_add_rows)(const float* source, const int32_t* token, int64_t rows, int64_t width,
                           int64_t table_rows, float* table);
  // target = source · weight[row]
  void (*scale_rows)(const float* source, const float* weight, int64_t rows, int64_t width, float* target);
  // result[r] = Σ a · b
  void (*dot_rows)(const float* a, const float* b, int64_t rows, int64_t width, float* result);

  // log_sum and loss per row; a target of −1 has loss 0.
  void (*cross_entropy_forward)(const float* logits, const int32_t* target, int64_t rows, int64_t width,
                                float* log_sum, float* loss);
  // logits → softmax − one-hot(target), 0 where the target is −1.
  void (*cross_entropy_backward)(float* logits, const int32_t* target, const float* log_sum, int64_t rows,
                                 int64_t width);

  double (*sum_of_squares)(const float* values, int64_t count);
  // One pass over a range (Loshchilov, Hutter 2019): see adamw.h for the equations.
  void (*adamw)(float* parameter, float* gradient, float* moment1, float* moment2, int64_t count, float scale,
                float keep, float step_size, float beta1, float beta2, float root_correction, float epsilon);
};

extern const Kernels kernels_sse2;
extern const Kernels kernels_avx2;
extern const Kernels kernels_avx512;

}  // namespace neuroshard::model
