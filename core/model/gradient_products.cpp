#include "core/model/gradient_products.h"

#include <algorithm>

#include "core/model/packed_weight.h"
#include "core/model/tensors.h"

namespace neuroshard::model {
namespace {

// Rows of a gradient in one task: with the usual widths, its sums stay in the second-level cache.
constexpr std::int64_t tile_height = 128;
// Rows of activations that one tile sums over: more would push its operands out of that cache.
constexpr std::int64_t tile_depth = 1024;

// A stretch of a product's rows and where its operands stand in the scratch.
struct Slice {
  const GradientProduct* product = nullptr;
  std::int64_t first = 0;
  std::int64_t rows = 0;
  std::int64_t depth = 0;   // rows, rounded up
  std::int64_t turned = 0;  // [m, depth]
  std::int64_t packed = 0;
};

std::vector<Slice> slices_of(const std::vector<GradientProduct>& products, std::int64_t& scratch) {
  std::vector<Slice> slices;
  scratch = 0;
  for (const GradientProduct& product : products) {
    for (std::int64_t first = 0; first < product.rows; first += tile_depth) {
      Slice slice;
      slice.product = &product;
      slice.first = first;
      slice.rows = std::min(tile_depth, product.rows - first);
      slice.depth = (slice.rows + packed_rows - 1) / packed_rows * packed_rows;
      slice.turned = scratch;
      scratch += slice.depth * product.m;
      slice.packed = scratch;
      scratch += packed_count(slice.depth, product.n);
      slices.push_back(slice);
    }
  }
  return slices;
}

// Columns [first, first + packed_columns) of one operand of a slice.
struct Copy {
  const Slice* slice = nullptr;
  std::int64_t first = 0;
  bool turn = false;
};

std::vector<Copy> copies_of(const std::vector<Slice>& slices) {
  std::vector<Copy> copies;
  for (const Slice& slice : slices) {
    for (std::int64_t first = 0; first < slice.product->m; first += packed_columns)
      copies.push_back({&slice, first, true});
    for (std::int64_t first = 0; first < slice.product->n; first += packed_columns)
      copies.push_back({&slice, first, false});
  }
  return copies;
}

void copy(const Kernels& kernels, const Copy& copy, Bf16* scratch) {
  const Slice& slice = *copy.slice;
  const GradientProduct& product = *slice.product;
  if (copy.turn) {
    kernels.transpose_columns(product.a + slice.first * product.m, slice.rows, product.m, copy.first,
                              std::min(packed_columns, product.m - copy.first), slice.depth,
                              scratch + slice.turned + copy.first * slice.depth);
  } else {
    kernels.pack_columns(product.b + slice.first * product.n, slice.rows, product.n, copy.first, slice.depth,
                         scratch + slice.packed + copy.first * slice.depth);
  }
}

// Tiles of all products; the slices of a product follow each other.
std::vector<TileSum> sums_of(const std::vector<Slice>& slices, const Bf16* scratch) {
  std::vector<TileSum> sums;
  for (std::size_t begin = 0; begin < slices.size();) {
    const GradientProduct& product = *slices[begin].product;
    std::size_t end = begin;
    while (end < slices.size() && slices[end].product == &product) ++end;
    for (std::int64_t top = 0; top < product.m; top += tile_height) {
      TileSum sum{{}, product.sum + top * product.n, std::min(tile_height, product.m - top), product.n};
      for (std::size_t i = begin; i < end; ++i) {
        const Slice& slice = slices[i];
        sum.parts.push_back(
            {scratch + slice.turned + top * slice.depth, scratch + slice.packed, slice.depth});
      }
      sums.push_back(std::move(sum));
    }
    begin = end;
  }
  return sums;
}

}  // namespace

void add_gradients(TileProducts& tiles, const Kernels& kernels,
                   const std::vector<GradientProduct>& products) {
  std::int64_t values = 0;
  const std::vector<Slice> slices = slices_of(products, values);
  const at::Tensor buffer = make_bf16({values});
  Bf16* const scratch = bf16s(buffer);
  const std::vector<Copy> copies = copies_of(slices);
  const auto count = static_cast<std::int64_t>(copies.size());
#pragma omp parallel for schedule(dynamic, 2) if (count > 2)
  for (std::int64_t i = 0; i < count; ++i) copy(kernels, copies[static_cast<std::size_t>(i)], scratch);
  tiles.add(sums_of(slices, scratch));
}

}  // namespace neuroshard::model
