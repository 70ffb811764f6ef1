#include "core/partition/graph/machine_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/check.h"

namespace neuroshard::partition {

double seconds_of(const MachineModel& machine, const OperationCost& cost) {
  // A view or a name costs nothing, not even the start of an operation.
  if (cost.flops == 0 && cost.bytes == 0) return 0;
  return std::max(cost.flops / machine.flops, cost.bytes / machine.memory_bandwidth) + machine.launch;
}

OperationCost CostedGraph::total() const {
  OperationCost sum;
  for (const OperationCost& cost : costs) {
    sum.flops += cost.flops;
    sum.bytes += cost.bytes;
  }
  return sum;
}

Expected<ComputationGraph> with_work(CostedGraph costed, const MachineModel& machine) {
  NS_CHECK(costed.costs.size() == costed.graph.nodes.size());
  const auto usable = [](double value) { return std::isfinite(value) && value > 0; };
  if (!usable(machine.flops) || !usable(machine.memory_bandwidth) || !(machine.launch >= 0) ||
      !std::isfinite(machine.launch)) {
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("the machine model has {} FLOP/s, {} bytes/s and {} s per operation; the "
                                  "first two must be positive, the last not negative",
                                  machine.flops, machine.memory_bandwidth, machine.launch));
  }
  ComputationGraph graph = std::move(costed.graph);
  graph.unit = "ms";
  graph.unit_seconds = 1e-3;
  for (std::size_t v = 0; v < graph.nodes.size(); ++v) {
    graph.nodes[v].work = seconds_of(machine, costed.costs[v]) / graph.unit_seconds;
  }
  graph.convention += fmt::format(
      "; work = max(FLOP / {:.4g}e9 per s, bytes / {:.4g}e9 per s) + {:.3g} us per operation; a tensor costs "
      "its bytes / bandwidth, once per producer for each consuming block and once on output",
      machine.flops / 1e9, machine.memory_bandwidth / 1e9, machine.launch * 1e6);
  NS_RETURN_IF_ERROR(validate(graph));
  return graph;
}

}  // namespace neuroshard::partition
