// Matrix products. All of them end in oneDNN's sgemm: the tensor form through LibTorch, whose call of the
// BLAS function sgemm_ is answered by this module (blas.cpp) whatever BLAS library is installed; the raw form
// directly, because it is used inside parallel regions. Row-major.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace neuroshard::model {

// y [N,O] = x [N,I] · weightᵀ, weight [O,I]
void multiply_transposed(at::Tensor& y, const at::Tensor& x, const at::Tensor& weight);
// y [N,O] = base [N,O] + x [N,I] · weightᵀ
void multiply_transposed_plus(at::Tensor& y, const at::Tensor& base, const at::Tensor& x,
                              const at::Tensor& weight);
// y [N,I] = x [N,O] · weight [O,I]
void multiply(at::Tensor& y, const at::Tensor& x, const at::Tensor& weight);
// sum [O,I] += aᵀ · b, a [N,O], b [N,I]: the gradient of a weight.
void add_outer(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b);

// C [m,n] = alpha · op(A) · op(B) + beta · C; strides are the row lengths in memory. Serial inside a parallel
// region, and therefore without exceptions: false if oneDNN fails (out of memory).
struct Operand {
  const float* data = nullptr;
  std::int64_t stride = 0;
  bool transposed = false;
};
[[nodiscard]] bool gemm(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, Operand a, Operand b,
                        float beta, float* c, std::int64_t c_stride);

}  // namespace neuroshard::model
