#include "core/partition/search/detail/reachability.h"

namespace neuroshard::partition::detail {

Reachability::Reachability(const TensorGraph& graph)
    : after(graph.size(), graph.size()), before(graph.size(), graph.size()) {
  const std::vector<NodeIndex> order = topological_order(graph);
  for (const NodeIndex v : order) {
    for (const NodeIndex u : graph.predecessors[v]) {
      for (std::size_t w = 0; w < before.words(); ++w) before.row(v)[w] |= before.row(u)[w];
      before.set(v, u);
    }
  }
  for (std::size_t i = order.size(); i-- > 0;) {
    const NodeIndex v = order[i];
    for (const NodeIndex s : graph.successors[v]) {
      for (std::size_t w = 0; w < after.words(); ++w) after.row(v)[w] |= after.row(s)[w];
      after.set(v, s);
    }
  }
}

}  // namespace neuroshard::partition::detail
