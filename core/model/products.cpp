#include "core/model/products.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>
#include <dnnl.h>

namespace neuroshard::model {

void multiply_transposed(at::Tensor& y, const at::Tensor& x, const at::Tensor& weight) {
  at::mm_out(y, x, weight.t());
}

void multiply_transposed_plus(at::Tensor& y, const at::Tensor& base, const at::Tensor& x,
                              const at::Tensor& weight) {
  at::addmm_out(y, base, x, weight.t());
}

void multiply(at::Tensor& y, const at::Tensor& x, const at::Tensor& weight) {
  at::mm_out(y, x, weight);
}

void add_outer(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
  at::addmm_out(sum, sum, a.t(), b);
}

bool gemm(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, Operand a, Operand b, float beta,
          float* c, std::int64_t c_stride) {
  return dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, alpha, a.data, a.stride,
                    b.data, b.stride, beta, c, c_stride) == dnnl_success;
}

}  // namespace neuroshard::model
