// Bytes of one token's activations at a boundary between two nodes (docs/protocol/pipeline.md).
#pragma once

#include <string>

#include "core/compute/model_shape.h"

namespace neuroshard::app {

// wire: "int8", "bf16", else fp32.
double boundary_bytes(const std::string& wire, const compute::ModelShape& shape);

}  // namespace neuroshard::app
