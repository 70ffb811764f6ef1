#include "core/model/gemv.h"

#include "core/model/tensors.h"

namespace neuroshard::model {

bool few_rows(const std::vector<Product>& products) {
  for (const Product& product : products) {
    if (product.x.size(0) > most_few_rows) return false;
  }
  return true;
}

void multiply_few(const Backend& backend, const std::vector<Product>& products, ProductOutput output) {
  std::vector<FewProduct> few;
  few.reserve(products.size());
  for (const Product& product : products) {
    const Weight& weight = *product.weight;
    const void* values = weight.packed != nullptr ? raw(weight.packed->forward) : raw(weight.value);
    few.push_back({values, raw(product.x), raw(product.y), product.x.size(0), weight.value.size(0),
                   weight.value.size(1)});
  }
  backend.kernels->multiply_few(few.data(), static_cast<std::int64_t>(few.size()), output);
}

}  // namespace neuroshard::model
