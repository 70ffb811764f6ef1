// Shared by the kernels of all tables: the type of activations, exp, and the blocks of a reduction.
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

// Elementwise kernels share out ranges of this many values: they begin at the same places whatever the number
// of threads.
constexpr int64_t range = 4096;

inline int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

inline int64_t block_start(int64_t block, int64_t rows) {
  return rows * block / reduction_blocks;
}

}  // namespace
}  // namespace neuroshard::model
