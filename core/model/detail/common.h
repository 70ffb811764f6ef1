// What the kernels of all tables share: the type of activations, exp, and the blocks of a reduction.
#pragma once

#include <float.h>   // NOLINT
#include <math.h>    // NOLINT
#include <string.h>  // NOLINT

#include "core/model/kernels.h"

namespace neuroshard::model {
namespace {

// The type of this table's activations.
#ifdef NS_KERNEL_BFLOAT16
using Value = Bf16;
constexpr Element table_element = Element::BFloat16;
#else
using Value = float;
constexpr Element table_element = Element::Float;
#endif

inline float widened(float value) {
  return value;
}
inline float widened(Bf16 value) {
  const uint32_t bits = static_cast<uint32_t>(value) << 16;
  float result;
  memcpy(&result, &bits, sizeof result);
  return result;
}
inline void put(float& target, float value) {
  target = value;
}
// To nearest, ties to even; a NaN stays one.
inline void put(Bf16& target, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  target = static_cast<Bf16>(value == value ? rounded : (bits >> 16) | 0x40u);
}

inline const Value* values(const void* activations) {
  return static_cast<const Value*>(activations);
}
inline Value* values(void* activations) {
  return static_cast<Value*>(activations);
}

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

}  // namespace
}  // namespace neuroshard::model
