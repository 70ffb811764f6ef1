// Runs a TorchScript graph operation by operation, to see sizes, times and costs.
#pragma once

#include <unordered_map>
#include <vector>

#include "core/model/script_costs.h"
#include "core/model/script_file.h"
#include "core/model/script_graph.h"

namespace neuroshard::model {

struct OperationProfile {
  ScriptCost cost;
  double seconds = 0;  // median of the timed passes, without what a start of the interpreter takes
};

struct ScriptProfile {
  std::vector<OperationProfile> operations;                    // as ScriptStructure::operations()
  std::unordered_map<const torch::jit::Value*, double> bytes;  // of base values
  std::unordered_map<const torch::jit::Value*, bool> scalar;   // not more than one element, or no tensor
  std::vector<std::size_t> result_leaves;                      // tensors and numbers in each result
  double launch_seconds = 0;                                   // of an operation on one element
};

// One untimed pass and `passes` timed ones over fresh copies of `arguments`, these while `companions` threads
// run the graph as well.
ScriptProfile profile_script(const ScriptStructure& structure, const std::vector<c10::IValue>& arguments,
                             std::uint32_t passes, std::uint32_t companions, const compute::ScriptHost& host);

}  // namespace neuroshard::model
