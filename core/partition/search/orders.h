// Topological orders to slice: fixed rules, and Kahn's algorithm with priorities.
#pragma once

#include <cstddef>
#include <vector>

#include "core/partition/graph/tensor_graph.h"

namespace neuroshard::partition {

// Kahn's algorithm: among the ready nodes the one with the highest key, then the lowest index.  O(m + n log
// n).
std::vector<NodeIndex> order_by_keys(const TensorGraph& graph, const std::vector<double>& keys);

// Keys under which order_by_keys gives this order again.
std::vector<double> keys_of_order(const std::vector<NodeIndex>& order);

// Nodes and tensors that the greedy order looks at: each step looks at all that is ready, so a wide graph of
// many nodes takes hours.
inline constexpr std::size_t max_greedy_looks = 100'000'000;

// Orders that cut well without a search: by index, depth first (branches one after another), breadth first,
// by depth from either end, and greedily by the cost of the tensors that are in flight; no order twice. The
// greedy one is left out where it takes more than max_greedy_looks.
std::vector<std::vector<NodeIndex>> simple_orders(const TensorGraph& graph);

}  // namespace neuroshard::partition
