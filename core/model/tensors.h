// Small helpers for tensors on the CPU, dense, without gradient history.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/model/kernels.h"

namespace neuroshard::model {

// Uninitialised.
at::Tensor make_floats(at::IntArrayRef dims);
at::Tensor make_ints(at::IntArrayRef dims);
at::Tensor make_bf16(at::IntArrayRef dims);
at::Tensor make_bytes(at::IntArrayRef dims);
// In the type of the table's activations.
at::Tensor make_activations(const Kernels& kernels, at::IntArrayRef dims);
at::Tensor make_zeros(at::IntArrayRef dims);
// A view of memory that somebody else owns and keeps alive.
at::Tensor wrap_floats(float* data, at::IntArrayRef dims);
at::Tensor wrap_floats(const float* data, at::IntArrayRef dims);  // read only, by promise
// Owning copies.
at::Tensor copy_floats(const float* data, at::IntArrayRef dims);
at::Tensor copy_ints(const std::int32_t* data, at::IntArrayRef dims);

inline void* raw(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.data_ptr() : nullptr;
}
inline float* floats(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.data_ptr<float>() : nullptr;
}
inline std::int32_t* ints(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.data_ptr<std::int32_t>() : nullptr;
}
inline Bf16* bf16s(const at::Tensor& tensor) {
  return tensor.defined() ? reinterpret_cast<Bf16*>(tensor.data_ptr<at::BFloat16>()) : nullptr;
}
inline std::int64_t element_bytes(const Kernels& kernels) {
  return kernels.element == Element::Float ? sizeof(float) : sizeof(Bf16);
}
// fp32 as activations: the same tensor in an fp32 table.
at::Tensor narrowed(const Kernels& kernels, const at::Tensor& values);
// Rows [first, first + count) of a matrix; shares its memory.
inline at::Tensor rows_of(const at::Tensor& tensor, std::int64_t first, std::int64_t count) {
  return tensor.narrow(0, first, count);
}

}  // namespace neuroshard::model
