#include "core/model/products_check.h"

#include <algorithm>
#include <cmath>

#include "core/base/rng.h"
#include "core/model/products.h"
#include "core/model/tensors.h"

namespace neuroshard::model {
namespace {

constexpr std::int64_t size = 256;
constexpr int timed_rounds = 3;

at::Tensor random_matrix(Rng& rng) {
  at::Tensor matrix = make_floats({size, size});
  for (std::int64_t i = 0; i < matrix.numel(); ++i) floats(matrix)[i] = rng.normal();
  return matrix;
}

// A few entries of a·bᵀ against a plain sum.
bool matches(const at::Tensor& product, const at::Tensor& a, const at::Tensor& b) {
  for (std::int64_t row = 0; row < size; row += 17) {
    for (std::int64_t column = 3; column < size; column += 29) {
      double sum = 0;
      double scale = 0;
      for (std::int64_t i = 0; i < size; ++i) {
        const double term = double{floats(a)[row * size + i]} * floats(b)[column * size + i];
        sum += term;
        scale += std::abs(term);
      }
      if (!(std::abs(floats(product)[row * size + column] - sum) <= 1e-5 * scale)) return false;
    }
  }
  return true;
}

}  // namespace

ProductsCheck check_products(compute::HostServices& host) {
  Rng rng(1);
  const at::Tensor a = random_matrix(rng);
  const at::Tensor b = random_matrix(rng);
  at::Tensor product = make_floats({size, size});
  const std::uint64_t before = answered_products();
  multiply_floats(product, a, b.t());
  ProductsCheck check;
  check.torch_uses_onednn = answered_products() > before;
  check.correct = matches(product, a, b);
  if (!check.torch_uses_onednn) return check;  // timing a reference BLAS would only cost time
  for (int round = 0; round < timed_rounds; ++round) {
    const std::int64_t start = host.monotonic_nanoseconds();
    multiply_floats(product, a, b.t());
    const std::int64_t nanoseconds = std::max<std::int64_t>(1, host.monotonic_nanoseconds() - start);
    check.gigaflops = std::max(check.gigaflops, 2.0 * size * size * size / static_cast<double>(nanoseconds));
  }
  return check;
}

}  // namespace neuroshard::model
