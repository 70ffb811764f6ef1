#include "core/partition/search/reduction.h"

#include <algorithm>

namespace neuroshard::partition {
namespace {

double cost_of(const TensorGraph& graph, const std::vector<TensorIndex>& tensors) {
  double sum = 0;
  for (const TensorIndex t : tensors) sum += graph.tensors[t].cost;
  return sum;
}

// Tensor cost that takes as long as a unit of work, on the device where that is most; unlimited where tensors
// cost nothing.
double price_of_work(const std::vector<Device>& devices) {
  double most = 0;
  for (const Device& device : devices) {
    most = std::max(most, device.io_factor > 0 ? device.work_factor / device.io_factor : unlimited);
  }
  return most;
}

// The node that v may join, or v itself. Sums are compared to the side that merges less.
NodeIndex partner_of(const TensorGraph& graph, NodeIndex v, double price) {
  if (graph.params[v] > 0) return v;
  const double work = graph.work[v] > 0 ? graph.work[v] * price * (1 + 1e-12) : 0;
  if (work == unlimited) return v;
  const double out = cost_of(graph, graph.produced[v]);
  if (graph.successors[v].size() == 1 && work + cost_of(graph, graph.consumed[v]) <= out)
    return graph.successors[v][0];
  if (graph.predecessors[v].size() == 1) {
    double own = 0;
    for (const TensorIndex t : graph.consumed[v]) {
      if (graph.tensors[t].consumers.size() == 1) own += graph.tensors[t].cost;
    }
    if (work + out <= own) return graph.predecessors[v][0];
  }
  return v;
}

}  // namespace

Grouping reduce_dominated(const TensorGraph& graph, const std::vector<Device>& devices) {
  const double price = price_of_work(devices);
  Grouping total = close_groups(graph, {});
  TensorGraph reduced = contract(graph, total);
  for (;;) {
    // One independent set of steps at a time: a node that took part waits for the next round, because each
    // step is justified for the graph that the steps before it left.
    std::vector<std::pair<NodeIndex, NodeIndex>> together;
    std::vector<bool> touched(reduced.size());
    for (NodeIndex v = 0; v < reduced.size(); ++v) {
      const NodeIndex partner = partner_of(reduced, v, price);
      if (partner == v) continue;
      bool blocked = touched[v];
      for (const auto* list : {&reduced.successors[v], &reduced.predecessors[v]}) {
        for (const NodeIndex w : *list) blocked = blocked || touched[w];
      }
      if (blocked) continue;
      touched[v] = touched[partner] = true;
      for (const auto* list : {&reduced.successors[v], &reduced.predecessors[v]}) {
        for (const NodeIndex w : *list) touched[w] = true;
      }
      together.emplace_back(v, partner);
    }
    if (together.empty()) return total;
    const Grouping step = close_groups(reduced, together);
    total = compose(total, step);
    reduced = contract(reduced, step);
  }
}

}  // namespace neuroshard::partition
