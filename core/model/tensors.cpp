#include "core/model/tensors.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include <cstring>

namespace neuroshard::model {

at::Tensor make_floats(at::IntArrayRef dims) {
  return at::empty(dims, at::TensorOptions(at::kFloat));
}
at::Tensor make_ints(at::IntArrayRef dims) {
  return at::empty(dims, at::TensorOptions(at::kInt));
}
at::Tensor make_bf16(at::IntArrayRef dims) {
  return at::empty(dims, at::TensorOptions(at::kBFloat16));
}
at::Tensor make_bytes(at::IntArrayRef dims) {
  return at::empty(dims, at::TensorOptions(at::kByte));
}
at::Tensor make_activations(const Kernels& kernels, at::IntArrayRef dims) {
  return kernels.element == Element::Float ? make_floats(dims) : make_bf16(dims);
}
at::Tensor make_zeros(at::IntArrayRef dims) {
  return at::zeros(dims, at::TensorOptions(at::kFloat));
}

at::Tensor wrap_floats(float* data, at::IntArrayRef dims) {
  return at::from_blob(data, dims, at::TensorOptions(at::kFloat));
}
at::Tensor wrap_floats(const float* data, at::IntArrayRef dims) {
  return wrap_floats(const_cast<float*>(data), dims);  // LibTorch has no tensor of constants
}

at::Tensor copy_floats(const float* data, at::IntArrayRef dims) {
  at::Tensor copy = make_floats(dims);
  std::memcpy(copy.data_ptr(), data, copy.nbytes());
  return copy;
}
at::Tensor copy_ints(const std::int32_t* data, at::IntArrayRef dims) {
  at::Tensor copy = make_ints(dims);
  std::memcpy(copy.data_ptr(), data, copy.nbytes());
  return copy;
}

at::Tensor narrowed(const Kernels& kernels, const at::Tensor& values) {
  if (kernels.element == Element::Float) return values;
  at::Tensor copy = make_bf16(values.sizes());
  kernels.narrow(floats(values), values.numel(), raw(copy));
  return copy;
}

}  // namespace neuroshard::model
