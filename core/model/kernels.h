// Elementwise and row-wise kernels of the CPU, one table per instruction set (SSE2, AVX2, AVX-512), chosen
// once at start. Matrix products are not here: they go to oneDNN (products.h).
//
// A table works in one precision: `element` is the type of its activations (what products read and most of
// what they write). Pointers to activations are void*; all other arrays are fp32. Arithmetic is fp32 in every
// table: activations are widened when read and rounded to nearest even when written.
//
// All arrays are row-major. Every kernel spreads its rows over the OpenMP pool unless marked "serial",
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

// bf16 values travel as their bits.
using Bf16 = uint16_t;

enum class Element : uint8_t { Float, BFloat16 };

// A packed operand (packed_weight.h) has blocks of packed_columns columns and its rows padded to packed_rows.
// The functions are static for the reason above.
constexpr int64_t packed_columns = 64;
constexpr int64_t packed_rows = 32;
static constexpr int64_t padded_rows_of(int64_t rows) {
  return (rows + packed_rows - 1) / packed_rows * packed_rows;
}
// Values of a packed operand [rows, columns].
static constexpr int64_t packed_count(int64_t rows, int64_t columns) {
  return padded_rows_of(rows) * ((columns + packed_columns - 1) / packed_columns * packed_columns);
}

// The output of a product: activations, fp32, or fp32 that it adds to.
enum class ProductOutput : uint8_t { Bf16, Fp32, AddFp32 };

// y [rows, outputs] = x [rows, inputs] · Wᵀ. In an fp32 table x and y are fp32 and the weight is [outputs,
// inputs]; in a bf16 table x is bf16 and the weight its forward copy (packed_weight.h).
struct FewProduct {
  const void* weight;
  const void* x;
  void* y;
  int64_t rows;
  int64_t outputs;
  int64_t inputs;
};

// The numbers of one AdamW step over a range: see adamw.h for the equations.
struct AdamwScalars {
  float scale;      // of the gradient: 1 / tokens, and clipping
  float keep;       // 1 − lr · decay
  float step_size;  // lr / (1 − β1^t)
  float beta1;
  float beta2;
  float root_correction;  // 1 / sqrt(1 − β2^t)
  float epsilon;
};

struct AttentionShape;  // attention_shape.h
struct AttentionInput;
struct AttentionGradient;

struct Kernels {
  Element element;

  // y = x · inverse · gain with inverse = 1/sqrt(mean(x²) + epsilon), per row; NaN when mean(x²) overflows.
  void (*rms_norm_forward)(const float* x, const float* gain, float epsilon, int64_t rows, int64_t width,
                           void* y, float* inverse);
  // y again from a kept inverse.
  void (*rms_norm_apply)(const float* x, const float* gain, const float* inverse, int64_t rows, int64_t width,
                         void* y);
  // gradient_x adds. gain_blocks [reduction_blocks, width]: the gain's gradient in parts, for add_blocks.
  // narrowed, unless null: gradient_x after the addition, as activations, for the products that read it next.
  void (*rms_norm_backward)(const float* gradient_y, const float* x, const float* gain, const float* inverse,
                            int64_t rows, int64_t width, float* gradient_x, float* gain_blocks,
                            void* narrowed);
  // Serial. sum [width] adds the rows of blocks [reduction_blocks, width], one after the other.
  void (*add_blocks)(const float* blocks, int64_t width, float* sum);

  // Rotates `heads` adjacent heads of width `dim` at the start of each row of stride `stride`, in place. Row
  // r stands at position offset + r mod period. cosine, sine: [positions, dim/2]. direction +1 forward, -1
  // backward.
  void (*rope)(void* x, int64_t rows, int64_t stride, int64_t heads, int64_t dim, int64_t period,
               int64_t offset, const float* cosine, const float* sine, float direction);

  // Attention (attention.h says what it computes). scratch: threads · attention_…_floats(shape) +
  // attention_…_shared_floats(shape) of attention_shape.h, uninitialised.
  void (*attention_forward)(const AttentionShape& shape, const AttentionInput& input, int threads,
                            float* scratch, void* output, float* log_sum);
  void (*attention_backward)(const AttentionShape& shape, const AttentionInput& input, const void* output,
                             const float* log_sum, const void* gradient_output, int threads, float* scratch,
                             const AttentionGradient& gradient);

  // Independent products with few rows, as one loop over all outputs that reads each weight once from memory
  // (gemv.h). Bf16 only in a bf16 table.
  void (*multiply_few)(const FewProduct* products, int64_t count, ProductOutput output);

  // activation = silu(gate) · up for rows [gate | up] of 2·width.
  void (*swiglu_forward)(const void* gate_up, int64_t rows, int64_t width, void* activation);
  // gate_up is replaced by its gradient, gradient_activation by weight · activation.
  // gradient_activation comes in without the row's weight; gradient_weight[row] = Σ gradient_activation ·
  // activation.
  void (*swiglu_backward)(void* gate_up, void* gradient_activation, const float* weight, int64_t rows,
                          int64_t width, float* gradient_weight);

  // Between fp32 and activations.
  void (*narrow)(const float* source, int64_t count, void* target);
  void (*widen)(const void* source, int64_t count, float* target);

  // target[r] = source[index[r]], fp32
  void (*gather_rows)(const float* source, const int32_t* index, int64_t rows, int64_t width, float* target);
  // The same for activations, and from fp32 to activations.
  void (*gather_activations)(const void* source, const int32_t* index, int64_t rows, int64_t width,
                             void* target);
  void (*gather_narrow)(const float* source, const int32_t* index, int64_t rows, int64_t width, void* target);
  // target[r] adds Σ_j weight[r,j] · source[index[r,j]] over the `choices` entries that are not −1; weight
  // may be null (1).
  void (*combine_rows)(const void* source, const int32_t* index, const float* weight, int64_t choices,
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
  // gradient = softmax(logits) − one-hot(target), 0 where the target is −1. In an fp32 table, gradient may be
  // logits.
  void (*cross_entropy_backward)(const float* logits, const int32_t* target, const float* log_sum,
                                 int64_t rows, int64_t width, void* gradient);

  double (*sum_of_squares)(const float* values, int64_t count);
  // One pass over a range (Loshchilov, Hutter 2019): see adamw.h for the equations.
  void (*adamw)(float* parameter, float* gradient, float* moment1, float* moment2, int64_t count,
                const AdamwScalars& scalars);

  // The rest only in bf16 tables; null in the others. Layouts: packed_weight.h.

  // Both packed copies of a weight [rows, columns].  backward may be null.
  void (*pack_weight)(const float* weight, int64_t rows, int64_t columns, Bf16* forward, Bf16* backward);
  // adamw over a weight [rows, columns], and both packed copies of the new values while they are in the
  // cache.
  void (*adamw_packed)(float* parameter, float* gradient, float* moment1, float* moment2, int64_t rows,
                       int64_t columns, const AdamwScalars& scalars, Bf16* forward, Bf16* backward);
  // Serial. Columns [first, first + count) of source [rows, columns], turned: target[c − first][r] for the
  // padded_rows ≥ rows, zero beyond the rows. count a multiple of 32 unless it reaches the last column.
  void (*transpose_columns)(const Bf16* source, int64_t rows, int64_t columns, int64_t first, int64_t count,
                            int64_t padded_rows, Bf16* target);
  // Serial. One block of packed_columns columns from `first` of source [rows, columns] as the second operand
  // of a product over rows; zero beyond the rows and columns.  padded_rows: a multiple of packed_rows.
  void (*pack_columns)(const Bf16* source, int64_t rows, int64_t columns, int64_t first, int64_t padded_rows,
                       Bf16* target);

  // Attention with products of bf16 pairs: probabilities and their gradients are rounded to bf16 besides.
  void (*attention_forward_pairs)(const AttentionShape& shape, const AttentionInput& input, int threads,
                                  float* scratch, void* output, float* log_sum);
  void (*attention_backward_pairs)(const AttentionShape& shape, const AttentionInput& input,
                                   const void* output, const float* log_sum, const void* gradient_output,
                                   int threads, float* scratch, const AttentionGradient& gradient);
};

extern const Kernels kernels_sse2;
extern const Kernels kernels_avx2;
extern const Kernels kernels_avx512;
// Needs AVX512_BF16 besides.
extern const Kernels kernels_avx512_bf16;

}  // namespace neuroshard::model
