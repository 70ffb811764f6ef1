// The means of computation of a stage: the kernels of the processor and precision, and the products of that
// precision.
#pragma once

#include "core/model/kernels.h"
#include "core/model/tile_products.h"

namespace neuroshard::model {

struct Backend {
  const Kernels* kernels = nullptr;
  TileProducts* tiles = nullptr;  // null in fp32
};

}  // namespace neuroshard::model
