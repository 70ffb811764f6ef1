// Matrix products with weights. In fp32 they go through LibTorch to oneDNN's sgemm, because this module
// answers the BLAS function sgemm_ (blas.cpp) whatever BLAS library is installed; in bf16 to tile_products.h,
// with the weight's packed copies. Row-major.
//
// Lists are for the experts of a layer: in bf16 they are one parallel loop. The members of a list are
// independent. All throw OutOfMemory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/model/backend.h"
#include "core/model/slot_state.h"
#include "core/model/weight_gradients.h"

namespace neuroshard::model {

struct Product {
  at::Tensor y;  // activations or fp32
  at::Tensor x;  // activations
  const Weight* weight = nullptr;
};
// y [N,O] = x [N,I] · Wᵀ, W [O,I]
void multiply_transposed(const Backend& backend, const std::vector<Product>& products);
void multiply_transposed(const Backend& backend, at::Tensor& y, const at::Tensor& x, const Weight& weight);
// sum [N,O], fp32, += x [N,I] · Wᵀ
void add_transposed(const Backend& backend, at::Tensor& sum, const at::Tensor& x, const Weight& weight);
// y [N,I] = x [N,O] · W [O,I]
void multiply(const Backend& backend, const std::vector<Product>& products);
void multiply(const Backend& backend, at::Tensor& y, const at::Tensor& x, const Weight& weight);

// sum [O,I], fp32, += aᵀ · b, a [N,O], b [N,I] activations: the gradient of a weight.
struct OuterProduct {
  at::Tensor sum;
  at::Tensor a;
  at::Tensor b;
};
void add_outer(const Backend& backend, const std::vector<OuterProduct>& products);
// At once or later; an addition that is kept reads a and b.
void add_outer(const Backend& backend, std::vector<OuterProduct> products, WeightGradients& gradients);
void add_outer(const Backend& backend, const Weight& weight, const at::Tensor& a, const at::Tensor& b,
               WeightGradients& gradients);

// c [m,n] = a [m,k] · b [k,n], fp32, through LibTorch.
void multiply_floats(at::Tensor& c, const at::Tensor& a, const at::Tensor& b);

// C [m,n] = alpha · op(A) · op(B) + beta · C, fp32, by oneDNN directly; strides are the row lengths in
// memory. Serial inside a parallel region, and therefore without exceptions: false if oneDNN fails (out of
// memory).
struct Operand {
  const float* data = nullptr;
  std::int64_t stride = 0;
  bool transposed = false;
};
[[nodiscard]] bool gemm(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, Operand a, Operand b,
                        float beta, float* c, std::int64_t c_stride);

}  // namespace neuroshard::model
