#include "app/node/commands/plan/boundary_bytes.h"

namespace neuroshard::app {

double boundary_bytes(const std::string& wire, const compute::ModelShape& shape) {
  if (wire == "int8") return 4.0 + shape.hidden;
  return (wire == "bf16" ? 2.0 : 4.0) * shape.hidden;
}

}  // namespace neuroshard::app
