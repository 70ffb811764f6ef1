#include "core/model/products.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>
#include <dnnl.h>

#include "core/model/gemv.h"
#include "core/model/gradient_products.h"
#include "core/model/tensors.h"

namespace neuroshard::model {
namespace {

TileProduct forward_tile(const at::Tensor& y, const at::Tensor& x, const Weight& weight) {
  const PackedWeight& packed = *weight.packed;
  return {bf16s(x), bf16s(packed.forward), y.data_ptr(), x.size(0), packed.rows, packed.columns};
}

TileProduct backward_tile(const at::Tensor& y, const at::Tensor& x, const Weight& weight) {
  const PackedWeight& packed = *weight.packed;
  return {bf16s(x), bf16s(packed.backward), y.data_ptr(), x.size(0), packed.columns, packed.rows};
}

ProductOutput output_of(const at::Tensor& y) {
  return y.scalar_type() == at::kBFloat16 ? ProductOutput::Bf16 : ProductOutput::Fp32;
}

using TileOf = TileProduct (*)(const at::Tensor&, const at::Tensor&, const Weight&);
void multiply_tiles(const Backend& backend, const std::vector<Product>& products, TileOf tile_of) {
  std::vector<TileProduct> tiles;
  tiles.reserve(products.size());
  for (const Product& product : products) tiles.push_back(tile_of(product.y, product.x, *product.weight));
  if (!tiles.empty()) backend.tiles->multiply(tiles, output_of(products.front().y));
}

}  // namespace

void multiply_transposed(const Backend& backend, const std::vector<Product>& products) {
  if (products.empty()) return;
  if (few_rows(products)) return multiply_few(backend, products, output_of(products.front().y));
  if (backend.tiles != nullptr) return multiply_tiles(backend, products, forward_tile);
  for (const Product& product : products) {
    at::Tensor y = product.y;
    at::mm_out(y, product.x, product.weight->value.t());
  }
}

void multiply_transposed(const Backend& backend, at::Tensor& y, const at::Tensor& x, const Weight& weight) {
  multiply_transposed(backend, {{y, x, &weight}});
}

void add_transposed(const Backend& backend, at::Tensor& sum, const at::Tensor& x, const Weight& weight) {
  if (x.size(0) <= most_few_rows) return multiply_few(backend, {{sum, x, &weight}}, ProductOutput::AddFp32);
  if (backend.tiles != nullptr) {
    return backend.tiles->multiply({forward_tile(sum, x, weight)}, ProductOutput::AddFp32);
  }
  at::addmm_out(sum, sum, x, weight.value.t());
}

void multiply(const Backend& backend, const std::vector<Product>& products) {
  if (backend.tiles != nullptr) return multiply_tiles(backend, products, backward_tile);
  for (const Product& product : products) {
    at::Tensor y = product.y;
    at::mm_out(y, product.x, product.weight->value);
  }
}

void multiply(const Backend& backend, at::Tensor& y, const at::Tensor& x, const Weight& weight) {
  multiply(backend, {{y, x, &weight}});
}

void add_outer(const Backend& backend, const std::vector<OuterProduct>& products) {
  if (backend.tiles == nullptr) {
    for (const OuterProduct& product : products) {
      at::Tensor sum = product.sum;
      at::addmm_out(sum, sum, product.a.t(), product.b);
    }
    return;
  }
  std::vector<GradientProduct> gradients;
  gradients.reserve(products.size());
  for (const OuterProduct& product : products) {
    gradients.push_back({bf16s(product.a), bf16s(product.b), floats(product.sum), product.a.size(0),
                         product.a.size(1), product.b.size(1)});
  }
  add_gradients(*backend.tiles, *backend.kernels, gradients);
}

void add_outer(const Backend& backend, std::vector<OuterProduct> products, WeightGradients& gradients) {
  gradients.add([backend, products = std::move(products)] { add_outer(backend, products); });
}

void add_outer(const Backend& backend, const Weight& weight, const at::Tensor& a, const at::Tensor& b,
               WeightGradients& gradients) {
  add_outer(backend, {{weight.gradient, a, b}}, gradients);
}

void multiply_floats(at::Tensor& c, const at::Tensor& a, const at::Tensor& b) {
  at::mm_out(c, a, b);
}

bool gemm(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, Operand a, Operand b, float beta,
          float* c, std::int64_t c_stride) {
  return dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, alpha, a.data, a.stride,
                    b.data, b.stride, beta, c, c_stride) == dnnl_success;
}

}  // namespace neuroshard::model
