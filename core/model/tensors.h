// Small helpers for tensors: fp32 and int32 on the CPU, dense, without gradient history.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace neuroshard::model {

// Uninitialised.
at::Tensor make_floats(at::IntArrayRef dims);
at::Tensor make_ints(at::IntArrayRef dims);
at::Tensor make_zeros(at::IntArrayRef dims);
// A view of memory that somebody else owns and keeps alive.
at::Tensor wrap_floats(float* data, at::IntArrayRef dims);
at::Tensor wrap_floats(const float* data, at::IntArrayRef dims);  // read only, by promise
// Owning copies.
at::Tensor copy_floats(const float* data, at::IntArrayRef dims);
at::Tensor copy_ints(const std::int32_t* data, at::IntArrayRef dims);

inline float* floats(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.data_ptr<float>() : nullptr;
}
inline std::int32_t* ints(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.data_ptr<std::int32_t>() : nullptr;
}
// Rows [first, first + count) of a matrix; shares its memory.
inline at::Tensor rows_of(const at::Tensor& tensor, std::int64_t first, std::int64_t count) {
  return tensor.narrow(0, first, count);
}

}  // namespace neuroshard::model
