// What ONNX operators cost, from the shapes of their inputs and outputs.
#pragma once

#include <vector>

#include "core/partition/graph/machine_model.h"
#include "core/partition/import/detail/onnx_operator.h"

namespace neuroshard::partition::detail {

// Operations of one operator. *counted is false where no rule is known and 0 is returned: the bytes decide.
double onnx_flops(const OnnxOperator& op, const std::vector<OnnxValue>& outputs, bool* counted);

// Reshapes, casts of nothing and names: no memory is moved.
bool is_view(std::string_view op);

// Bytes read and written: an operator that picks rows of a table reads what it picks.
double onnx_bytes(const OnnxOperator& op, const OnnxInputs& inputs, const std::vector<OnnxValue>& outputs);

}  // namespace neuroshard::partition::detail
