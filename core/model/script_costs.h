// The cost of an operation of a TorchScript graph, counted from the sizes that it was seen with.
#pragma once

#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/ir/ir.h>

#include <vector>

namespace neuroshard::model {

struct ScriptCost {
  double operations = 0;  // of products and convolutions: a multiplication and an addition are two
  double traffic = 0;     // bytes read and written
  bool known = true;      // false: control flow, or not an operator of LibTorch; only time tells
};

// `arguments`: of the node's inputs, in order (undefined values where unknown); `results` of its outputs.
ScriptCost operation_cost(const torch::jit::Node& node, const std::vector<c10::IValue>& arguments,
                          const std::vector<c10::IValue>& results);

}  // namespace neuroshard::model
