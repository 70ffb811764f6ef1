// LibTorch calls the Fortran BLAS for fp32 products. Defined here and visible, this one is found before any
// installed BLAS, because the dynamic linker looks through this module before the libraries it loads.
// Debian's reference BLAS is thirty times slower, and other BLAS libraries bring a second thread pool.
#include <dnnl.h>

#include <atomic>
#include <cstdint>

#include "core/model/products_check.h"

namespace {

// The C symbol leaves no other place for it; read by the start-up check only.
std::atomic<std::uint64_t> answered{0};

// BLAS gives no way to report a failure; a product that can't be made (out of memory) must not pass for a
// result.
void fill_with_nan(int rows, int columns, float* c, int stride) {
  for (int column = 0; column < columns; ++column) {
    for (int row = 0; row < rows; ++row)
      c[static_cast<std::int64_t>(column) * stride + row] = __builtin_nanf("");
  }
}

}  // namespace

std::uint64_t neuroshard::model::answered_products() {
  return answered.load(std::memory_order_relaxed);
}

extern "C" __attribute__((visibility("default"))) void sgemm_(const char* transpose_a,
                                                              const char* transpose_b, const int* m,
                                                              const int* n, const int* k, const float* alpha,
                                                              const float* a, const int* lda, const float* b,
                                                              const int* ldb, const float* beta, float* c,
                                                              const int* ldc) {
  answered.fetch_add(1, std::memory_order_relaxed);
  const auto conjugate = [](char flag) { return flag == 'C' || flag == 'c' ? 'T' : flag; };
  // Column-major C = A·B is row-major Cᵀ = Bᵀ·Aᵀ.
  const dnnl_status_t status = dnnl_sgemm(conjugate(*transpose_b), conjugate(*transpose_a), *n, *m, *k,
                                          *alpha, b, *ldb, a, *lda, *beta, c, *ldc);
  if (status != dnnl_success) fill_with_nan(*m, *n, c, *ldc);
}
