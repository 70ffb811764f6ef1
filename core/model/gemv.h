// Products with few rows: generating one token multiplies one row with every weight, and takes as long as
// reading the weights. The general products read them more than once or in a worse order, and start a pool of
// threads per product; here all products of a list are one loop over outputs, each weight is read once and in
// order, and the rows stay in the first-level cache.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/backend.h"
#include "core/model/kernels.h"
#include "core/model/products.h"

namespace neuroshard::model {

// Up to here they are faster: with 16 rows 4 times in fp32 (sgemm is slow there) and 1.6 times in bf16,
// measured.
constexpr std::int64_t most_few_rows = 16;

// True when every product of the list has at most most_few_rows rows.
bool few_rows(const std::vector<Product>& products);
// Product::y = x · Wᵀ as `output` says; all y of one type. The same bits whatever the number of threads.
void multiply_few(const Backend& backend, const std::vector<Product>& products, ProductOutput output);

}  // namespace neuroshard::model
