// Products of few rows: one pass over the weights, which is what they cost.  See core/model/kernels.h.
#pragma once

#include "core/model/detail/common.h"
#include "core/model/detail/vectors.h"

#include <immintrin.h>  // NOLINT: see core/model/kernels.h

namespace neuroshard::model {
namespace {

// Weights below which waking the other threads costs more than they save.
constexpr int64_t least_parallel_weights = 32 * 1024;

#ifdef NS_KERNEL_BFLOAT16

constexpr int block_vectors = static_cast<int>(packed_columns / 16);
constexpr int rows_at_once = 4;  // as leave registers for their sums

// A task is a block of the packed weight.
inline int64_t task_outputs(const FewProduct&) {
  return packed_columns;
}

// Asks for the line that is needed this much later: a packed block is read faster than the processor foresees, by 40 %
// where measured. It may lie behind the end: that is no access.
constexpr uintptr_t bytes_ahead = 8192;
__attribute__((always_inline)) inline void prefetch_weights(const Bf16* at) {
  _mm_prefetch(reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(at) + bytes_ahead), _MM_HINT_T0);
}

// Two neighbouring inputs in every lane.
inline __m512bh in_every_lane(const Bf16* x, size_t bytes) {
  int32_t bits = 0;
  memcpy(&bits, x, bytes);
  return reinterpret_cast<__m512bh>(_mm512_set1_epi32(bits));
}

inline void put_outputs(const FewProduct& product, ProductOutput form, int64_t row, int64_t output,
                        __m512 sum) {
  const int64_t left = product.outputs - output;
  if (left <= 0) return;
  const __mmask16 mask = left >= 16 ? 0xffffu : static_cast<__mmask16>((1u << left) - 1u);
  const int64_t at = row * product.outputs + output;
  if (form == ProductOutput::Bf16) {
    const __m256i bits = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(sum));
    _mm256_mask_storeu_epi16(static_cast<Bf16*>(product.y) + at, mask, bits);
    return;
  }
  float* y = static_cast<float*>(product.y) + at;
  if (form == ProductOutput::AddFp32) sum = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, y), sum);
  _mm512_mask_storeu_ps(y, mask, sum);
}

// The block of outputs from `output` for `Rows` rows. Each sum runs over the inputs in order, whatever the number of
// rows: a row has the same bits in any company.
template <int Rows>
inline void few_rows_of_task(const FewProduct& product, ProductOutput form, int64_t output, int64_t row) {
  const Bf16* weight = static_cast<const Bf16*>(product.weight) + output * padded_rows_of(product.inputs);
  const Bf16* x = static_cast<const Bf16*>(product.x) + row * product.inputs;
  __m512 sums[Rows][block_vectors];
  for (auto& line : sums) {
    for (__m512& sum : line) sum = _mm512_setzero_ps();
  }
  const auto add_pair = [&](int64_t pair, size_t bytes) {
    const Bf16* source = weight + pair * 2 * packed_columns;
    __m512bh w[block_vectors];
#pragma GCC unroll 4
    for (int v = 0; v < block_vectors; ++v) {
      prefetch_weights(source + 32 * v);
      w[v] = reinterpret_cast<__m512bh>(_mm512_loadu_si512(source + 32 * v));
    }
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r) {
      const __m512bh value = in_every_lane(x + r * product.inputs + 2 * pair, bytes);
#pragma GCC unroll 4
      for (int v = 0; v < block_vectors; ++v) sums[r][v] = _mm512_dpbf16_ps(sums[r][v], w[v], value);
    }
  };
  const int64_t pairs = product.inputs / 2;
  for (int64_t pair = 0; pair < pairs; ++pair) add_pair(pair, 2 * sizeof(Bf16));
  if (product.inputs % 2 != 0) add_pair(pairs, sizeof(Bf16));  // with 0 as its second input
  for (int r = 0; r < Rows; ++r) {
    for (int v = 0; v < block_vectors; ++v) put_outputs(product, form, row + r, output + 16 * v, sums[r][v]);
  }
}

#else

typedef float Lanes4 __attribute__((vector_size(16)));
typedef float Lanes8 __attribute__((vector_size(32)));

// As many outputs and rows at a time as leave registers for their sums.
constexpr int rows_at_once = 4;
constexpr int outputs_at_once = 4;  // for one row
constexpr int outputs_for(int rows) {
  return lanes == 16 || rows <= 2 ? 4 : 2;
}

#if !defined(__AVX2__)
inline float sum_of_lanes(Vec v) {
  const Lanes4 half = v + __builtin_shufflevector(v, v, 2, 3, 0, 1);
  return half[0] + half[1];
}
#elif !defined(__AVX512F__)
inline float sum_of_lanes(Vec v) {
  const Lanes4 half = __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
  const Lanes4 quarter = half + __builtin_shufflevector(half, half, 2, 3, 0, 1);
  return quarter[0] + quarter[1];
}
#else
inline float sum_of_lanes(Vec v) {
  const Lanes8 half = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                      __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
  const Lanes4 quarter =
      __builtin_shufflevector(half, half, 0, 1, 2, 3) + __builtin_shufflevector(half, half, 4, 5, 6, 7);
  const Lanes4 eighth = quarter + __builtin_shufflevector(quarter, quarter, 2, 3, 0, 1);
  return eighth[0] + eighth[1];
}
#endif

// Weights of a task: large enough for the memory to stream, small enough to share out.
constexpr int64_t task_weights = 16 * 1024;

inline int64_t task_outputs(const FewProduct& product) {
  return outputs_at_once * (task_weights / (outputs_at_once * product.inputs) + 1);
}

// `Outputs` neighbouring outputs for `Rows` rows. Each sum runs over the inputs in order, whatever the number of rows
// and outputs: a row has the same bits in any company.
template <int Outputs, int Rows>
inline void few_outputs(const FewProduct& product, ProductOutput form, int64_t output, int64_t row) {
  const int64_t n = product.inputs;
  const float* weight = static_cast<const float*>(product.weight) + output * n;
  const float* x = static_cast<const float*>(product.x) + row * n;
  Vec sums[Outputs][Rows] = {};
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    Vec w[Outputs];
#pragma GCC unroll 4
    for (int o = 0; o < Outputs; ++o) w[o] = load(weight + o * n + i);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const Vec value = load(x + r * n + i);
#pragma GCC unroll 4
      for (int o = 0; o < Outputs; ++o) sums[o][r] += w[o] * value;
    }
  }
  for (int o = 0; o < Outputs; ++o) {
    for (int r = 0; r < Rows; ++r) {
      float sum = sum_of_lanes(sums[o][r]);
      for (int64_t rest = i; rest < n; ++rest) sum += weight[o * n + rest] * x[r * n + rest];
      float& y = static_cast<float*>(product.y)[(row + r) * product.outputs + output + o];
      y = form == ProductOutput::AddFp32 ? y + sum : sum;
    }
  }
}

// The outputs from `output` of one task for `Rows` rows.
template <int Rows>
inline void few_rows_of_task(const FewProduct& product, ProductOutput form, int64_t output, int64_t row) {
  constexpr int outputs = outputs_for(Rows);
  const int64_t end = output + task_outputs(product);
  const int64_t last = end < product.outputs ? end : product.outputs;
  for (; output + outputs <= last; output += outputs) few_outputs<outputs, Rows>(product, form, output, row);
  for (; output < last; ++output) few_outputs<1, Rows>(product, form, output, row);
}

#endif

inline int64_t task_count(const FewProduct& product) {
  const int64_t step = task_outputs(product);
  return (product.outputs + step - 1) / step;
}

template <int Rows>
inline void few_rest_of_task(const FewProduct& product, ProductOutput form, int64_t output, int64_t row) {
  if constexpr (Rows > 0) {
    if (product.rows - row == Rows) return few_rows_of_task<Rows>(product, form, output, row);
    few_rest_of_task<Rows - 1>(product, form, output, row);
  }
}

// Later groups of rows find the weights in the cache.
inline void run_few_task(const FewProduct& product, ProductOutput form, int64_t task) {
  const int64_t output = task * task_outputs(product);
  int64_t row = 0;
  for (; row + rows_at_once <= product.rows; row += rows_at_once)
    few_rows_of_task<rows_at_once>(product, form, output, row);
  few_rest_of_task<rows_at_once - 1>(product, form, output, row);
}

void multiply_few(const FewProduct* products, int64_t count, ProductOutput output) {
  int64_t tasks = 0;
  int64_t weights = 0;
  for (int64_t i = 0; i < count; ++i) {
    tasks += task_count(products[i]);
    weights += products[i].outputs * products[i].inputs;
  }
#pragma omp parallel for schedule(dynamic) if (tasks > 1 && weights > least_parallel_weights)
  for (int64_t i = 0; i < tasks; ++i) {
    const FewProduct* product = products;
    int64_t task = i;
    while (task >= task_count(*product)) task -= task_count(*product++);
    run_few_task(*product, output, task);
  }
}

}  // namespace
}  // namespace neuroshard::model
