// What all layers of a stage share.
#pragma once

#include "core/compute/model_shape.h"
#include "core/model/kernels.h"
#include "core/model/rope.h"

namespace neuroshard::model {

struct BlockContext {
  const Kernels* kernels = nullptr;
  compute::ModelShape shape;
  compute::RouterOptions router;
  RopeTable* rope = nullptr;
};

}  // namespace neuroshard::model
