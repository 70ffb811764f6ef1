// State shared by all layers of a stage.
#pragma once

#include "core/compute/model_shape.h"
#include "core/model/backend.h"
#include "core/model/rope.h"

namespace neuroshard::model {

struct BlockContext {
  Backend backend;
  compute::ModelShape shape;
  compute::RouterOptions router;
  RopeTable* rope = nullptr;

  const Kernels& kernels() const { return *backend.kernels; }
};

}  // namespace neuroshard::model
