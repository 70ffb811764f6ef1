#include "core/partition/import/script_import.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace neuroshard::partition {
namespace {

constexpr double milliseconds = 1e3;

CostedGraph read_graph(const compute::ScriptModel& model) {
  CostedGraph costed;
  for (std::uint32_t i = 0; i < model.node_count(); ++i) {
    const compute::ScriptNode from = model.node(i);
    GraphNode node;
    node.id = from.id;
    node.op = from.op;
    node.param_bytes = from.param_bytes;
    node.output_bytes = from.output_bytes;
    node.inputs.assign(from.inputs.begin(), from.inputs.end());
    costed.graph.nodes.push_back(std::move(node));
    costed.costs.push_back({from.operations, from.traffic_bytes});
  }
  for (std::uint32_t i = 0; i < model.group_count(); ++i) {
    const Span<const std::uint32_t> group = model.group(i);
    costed.graph.colocated.emplace_back(group.begin(), group.end());
  }
  costed.graph.unit = "ms";
  costed.graph.unit_seconds = 1 / milliseconds;
  costed.graph.convention = "TorchScript model, frozen, with the sizes of the given inputs";
  return costed;
}

bool takes_no_time(const compute::ScriptNode& node) {
  const std::string_view op = node.op;
  return op == "input" || op == "output";
}

}  // namespace

Expected<ComputationGraph> import_script(const compute::ScriptModel& model, const MachineModel* machine) {
  CostedGraph costed = read_graph(model);
  if (machine != nullptr) {
    NS_ASSIGN_OR_RETURN(ComputationGraph graph, with_work(std::move(costed), *machine));
    bool control_flow = false;
    for (std::uint32_t i = 0; i < model.node_count(); ++i) {
      const compute::ScriptNode node = model.node(i);
      if (node.timed_only) graph.nodes[i].work = node.seconds * milliseconds;
      if (takes_no_time(node)) graph.nodes[i].work = 0;
      control_flow = control_flow || node.timed_only;
    }
    if (control_flow) graph.convention += "; control flow as measured here";
    return graph;
  }
  ComputationGraph graph = std::move(costed.graph);
  for (std::uint32_t i = 0; i < model.node_count(); ++i)
    graph.nodes[i].work = model.node(i).seconds * milliseconds;
  graph.convention += "; work as measured here with one thread";
  if (model.companions() > 0)
    graph.convention += fmt::format(" beside {} more that ran the model", model.companions());
  graph.convention +=
      "; a tensor costs its bytes / bandwidth, once per producer for "
      "each consuming block and once on output";
  NS_RETURN_IF_ERROR(validate(graph));
  return graph;
}

OperationCost script_total(const compute::ScriptModel& model) {
  OperationCost total;
  for (std::uint32_t i = 0; i < model.node_count(); ++i) {
    total.flops += model.node(i).operations;
    total.bytes += model.node(i).traffic_bytes;
  }
  return total;
}

}  // namespace neuroshard::partition
