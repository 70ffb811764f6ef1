#include "core/placement/reduction.h"

namespace neuroshard::placement {
namespace {

double cost_of(const TensorGraph& graph, const std::vector<TensorIndex>& tensors) {
  double sum = 0;
  for (const TensorIndex t : tensors) sum += graph.tensors[t].cost;
  return sum;
}

// The node that v may join, or v itself.
NodeIndex free_partner(const TensorGraph& graph, NodeIndex v) {
  if (graph.work[v] > 0 || graph.params[v] > 0) return v;
  const double out = cost_of(graph, graph.produced[v]);
  if (graph.successors[v].size() == 1 && cost_of(graph, graph.consumed[v]) <= out)
    return graph.successors[v][0];
  if (graph.predecessors[v].size() == 1) {
    double own = 0;
    for (const TensorIndex t : graph.consumed[v]) {
      if (graph.tensors[t].consumers.size() == 1) own += graph.tensors[t].cost;
    }
    if (out <= own) return graph.predecessors[v][0];
  }
  return v;
}

}  // namespace

Grouping reduce_free_nodes(const TensorGraph& graph) {
  Grouping total = close_groups(graph, {});
  TensorGraph reduced = contract(graph, total);
  for (;;) {
    // One independent set of steps at a time: a node that took part waits for the next round, because each
    // step is justified for the graph that the steps before it left.
    std::vector<std::pair<NodeIndex, NodeIndex>> together;
    std::vector<bool> touched(reduced.size());
    for (NodeIndex v = 0; v < reduced.size(); ++v) {
      const NodeIndex partner = free_partner(reduced, v);
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

}  // namespace neuroshard::placement
