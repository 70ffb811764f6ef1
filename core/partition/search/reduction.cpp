#include "core/partition/search/reduction.h"

#include <algorithm>
#include <utility>

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

// Nodes and their neighbours that all passes look at: seconds for the largest graphs, far more than others
// need.
constexpr std::size_t most_looks = 20'000'000;

using Pairs = std::vector<std::pair<NodeIndex, NodeIndex>>;

// Steps that may be taken together. Each is justified for the graph that the steps before it left. So a node
// that took part in one, or is next to the node that moved, waits for the next pass. Steps into the same
// partner need not wait: their nodes have no other successor, or no other predecessor. So they are no
// neighbours, and no step makes the costs that justify another one worse.
Pairs independent_steps(const TensorGraph& graph, double price, std::size_t* looks) {
  constexpr NodeIndex nobody = ~NodeIndex{0};
  Pairs together;
  std::vector<NodeIndex> partner_at(graph.size(), nobody);  // of the steps that touch a node
  for (NodeIndex v = 0; v < graph.size(); ++v) {
    *looks += 1 + graph.successors[v].size() + graph.predecessors[v].size();
    const NodeIndex partner = partner_of(graph, v, price);
    if (partner == v) continue;
    const auto is_free = [&](NodeIndex w) { return partner_at[w] == nobody || partner_at[w] == partner; };
    bool blocked = !is_free(v);
    for (const auto* list : {&graph.successors[v], &graph.predecessors[v]}) {
      for (const NodeIndex w : *list) blocked = blocked || !is_free(w);
    }
    if (blocked) continue;
    partner_at[v] = partner;
    for (const auto* list : {&graph.successors[v], &graph.predecessors[v]}) {
      for (const NodeIndex w : *list) partner_at[w] = partner;
    }
    together.emplace_back(v, partner);
  }
  return together;
}

}  // namespace

Grouping reduce_dominated(const TensorGraph& graph, const std::vector<Device>& devices,
                          const std::function<bool()>& stop) {
  const double price = price_of_work(devices);
  Grouping total = close_groups(graph, {});
  TensorGraph reduced = contract(graph, total);
  std::size_t looks = 0;
  while (looks < most_looks && !stop()) {
    const Pairs together = independent_steps(reduced, price, &looks);
    if (together.empty()) break;
    const Grouping step = close_groups(reduced, together);
    total = compose(total, step);
    reduced = contract(reduced, step);
  }
  return total;
}

}  // namespace neuroshard::partition
