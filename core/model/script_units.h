// From operations to the nodes of a computation graph. A node has one output there, so an operation with
// several gets one more node for each, in the same block; operations on sizes and other single numbers, and
// those that take a list apart, go with the operation that they ask.
#pragma once

#include <string>
#include <vector>

#include "core/model/script_graph.h"
#include "core/model/script_profile.h"

namespace neuroshard::model {

struct ScriptUnitNode {
  std::string id, op;
  double operations = 0, traffic = 0, seconds = 0, param_bytes = 0, output_bytes = 0;
  bool timed_only = false;
  std::vector<std::uint32_t> inputs;
};

struct ScriptUnits {
  std::vector<ScriptUnitNode> nodes;               // in an order in which they can run
  std::vector<std::vector<std::uint32_t>> groups;  // of nodes that must share a block
  // By maker (ScriptStructure::maker): its node. An argument that nobody reads has none.
  static constexpr std::uint32_t no_node = 0xffffffffu;
  std::vector<std::uint32_t> node_of_maker;
};

ScriptUnits make_units(const ScriptStructure& structure, const ScriptProfile& profile);

}  // namespace neuroshard::model
