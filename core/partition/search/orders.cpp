#include "core/partition/search/orders.h"

#include <algorithm>
#include <queue>
#include <utility>

namespace neuroshard::partition {
namespace {

// Longest path from a source (forward) or to a sink, in nodes or in work.
std::vector<double> depth(const TensorGraph& graph, const std::vector<NodeIndex>& order, bool forward,
                          bool by_work) {
  std::vector<double> result(graph.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const NodeIndex v = order[forward ? i : order.size() - 1 - i];
    for (const NodeIndex u : forward ? graph.predecessors[v] : graph.successors[v]) {
      result[v] = std::max(result[v], result[u] + (by_work ? graph.work[u] : 1));
    }
  }
  return result;
}

// The ready node that was made ready last goes first; `backward` from the sinks, reversed.
std::vector<NodeIndex> depth_first(const TensorGraph& graph, bool backward) {
  const auto& from = backward ? graph.successors : graph.predecessors;
  const auto& to = backward ? graph.predecessors : graph.successors;
  std::vector<std::uint32_t> missing(graph.size());
  std::vector<NodeIndex> stack, order;
  for (NodeIndex i = 0; i < graph.size(); ++i) {
    const NodeIndex v = backward ? i : static_cast<NodeIndex>(graph.size() - 1 - i);
    missing[v] = static_cast<std::uint32_t>(from[v].size());
    if (missing[v] == 0) stack.push_back(v);
  }
  while (!stack.empty()) {
    const NodeIndex v = stack.back();
    stack.pop_back();
    order.push_back(v);
    for (const NodeIndex w : to[v]) {
      if (--missing[w] == 0) stack.push_back(w);
    }
  }
  if (backward) std::reverse(order.begin(), order.end());
  return order;
}

// Sources only when something needs them: a walk from the sinks that finishes inputs first.
std::vector<NodeIndex> inputs_on_demand(const TensorGraph& graph) {
  std::vector<std::uint8_t> state(graph.size());
  std::vector<NodeIndex> order, stack;
  for (NodeIndex sink = 0; sink < graph.size(); ++sink) {
    if (graph.successors[sink].empty()) stack.push_back(sink);
    while (!stack.empty()) {
      const NodeIndex v = stack.back();
      if (state[v] == 0) {
        state[v] = 1;
        for (const NodeIndex u : graph.predecessors[v]) {
          if (state[u] == 0) stack.push_back(u);
        }
        continue;
      }
      stack.pop_back();
      if (state[v] == 1) order.push_back(v);
      state[v] = 2;
    }
  }
  return order;
}

// Next is the ready node that adds least to the cost of the tensors in flight. Empty: too much to look at.
std::vector<NodeIndex> least_in_flight(const TensorGraph& graph) {
  std::vector<std::uint32_t> missing(graph.size()), waiting;
  for (const Tensor& tensor : graph.tensors)
    waiting.push_back(static_cast<std::uint32_t>(tensor.consumers.size()));
  std::vector<NodeIndex> ready, order;
  const auto looks = [&](NodeIndex v) { return 1 + graph.produced[v].size() + graph.consumed[v].size(); };
  std::size_t looks_at_ready = 0, looked = 0;
  const auto add_ready = [&](NodeIndex v) {
    ready.push_back(v);
    looks_at_ready += looks(v);
  };
  for (NodeIndex v = 0; v < graph.size(); ++v) {
    missing[v] = static_cast<std::uint32_t>(graph.predecessors[v].size());
    if (missing[v] == 0) add_ready(v);
  }
  const auto added = [&](NodeIndex v) {
    double sum = 0;
    for (const TensorIndex t : graph.produced[v]) sum += graph.tensors[t].cost;
    for (const TensorIndex t : graph.consumed[v]) {
      sum -= waiting[t] == 1 ? graph.tensors[t].cost : 0.01 * graph.tensors[t].cost;
    }
    return sum;
  };
  while (!ready.empty()) {
    looked += looks_at_ready;
    if (looked > max_greedy_looks) return {};
    // The latest among equals, so that ties follow a branch.
    std::size_t pick = 0;
    double least = added(ready[0]);
    for (std::size_t i = 1; i < ready.size(); ++i) {
      const double sum = added(ready[i]);
      if (sum <= least) least = sum, pick = i;
    }
    const NodeIndex v = ready[pick];
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(pick));
    looks_at_ready -= looks(v);
    order.push_back(v);
    for (const TensorIndex t : graph.consumed[v]) --waiting[t];
    for (const NodeIndex s : graph.successors[v]) {
      if (--missing[s] == 0) add_ready(s);
    }
  }
  return order;
}

}  // namespace

std::vector<NodeIndex> order_by_keys(const TensorGraph& graph, const std::vector<double>& keys) {
  std::vector<std::uint32_t> missing(graph.size());
  const auto later = [&](NodeIndex a, NodeIndex b) { return keys[a] != keys[b] ? keys[a] < keys[b] : a > b; };
  std::priority_queue<NodeIndex, std::vector<NodeIndex>, decltype(later)> ready(later);
  for (NodeIndex v = 0; v < graph.size(); ++v) {
    missing[v] = static_cast<std::uint32_t>(graph.predecessors[v].size());
    if (missing[v] == 0) ready.push(v);
  }
  std::vector<NodeIndex> order;
  order.reserve(graph.size());
  while (!ready.empty()) {
    const NodeIndex v = ready.top();
    ready.pop();
    order.push_back(v);
    for (const NodeIndex s : graph.successors[v]) {
      if (--missing[s] == 0) ready.push(s);
    }
  }
  return order;
}

std::vector<double> keys_of_order(const std::vector<NodeIndex>& order) {
  std::vector<double> keys(order.size());
  const double n = static_cast<double>(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) keys[order[i]] = 1 - static_cast<double>(i) / n;
  return keys;
}

std::vector<std::vector<NodeIndex>> simple_orders(const TensorGraph& graph) {
  std::vector<std::vector<NodeIndex>> orders{topological_order(graph)};
  const std::vector<NodeIndex> by_index = orders.front();
  orders.push_back(inputs_on_demand(graph));
  orders.push_back(depth_first(graph, false));
  orders.push_back(depth_first(graph, true));
  if (auto greedy = least_in_flight(graph); !greedy.empty()) orders.push_back(std::move(greedy));
  for (const bool forward : {true, false}) {
    for (const bool by_work : {false, true}) {
      std::vector<double> keys = depth(graph, by_index, forward, by_work);
      if (forward) {
        for (double& key : keys) key = -key;
      }
      orders.push_back(order_by_keys(graph, keys));
    }
  }
  std::vector<std::vector<NodeIndex>> distinct;
  for (auto& order : orders) {
    if (std::find(distinct.begin(), distinct.end(), order) == distinct.end())
      distinct.push_back(std::move(order));
  }
  return distinct;
}

}  // namespace neuroshard::partition
