// The definition, computed the slow way and from the input graph alone: the tests' yardstick.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/partition/graph/graph.h"
#include "core/partition/search/problem.h"

namespace neuroshard::test {

// The cost of one block by definition: sums over the graph's nodes and edges. `order` is the whole graph's
// order of execution, which decides what is in memory when; infinite when the block does not fit.
double block_cost(const partition::ComputationGraph& graph, const partition::Peer& peer,
                  const std::vector<std::uint32_t>& order, const std::vector<std::uint32_t>& block);

// The best bottleneck of all partitions into at most peers.size() blocks, by dynamic programming over all
// pairs of ideals and all sets of peers. n ≤ 12. Memory must not bind.
double best_bottleneck(const partition::ComputationGraph& graph, const std::vector<partition::Peer>& peers);

// The same by trying all topological orders and all ways to cut them; looks at memory. n ≤ 7, equal peers.
double best_bottleneck_by_orders(const partition::ComputationGraph& graph,
                                 const std::vector<partition::Peer>& peers);

// Empty when the blocks are a partition with an acyclic quotient, each peer has at most one block, every
// stated number is what the definition gives, and no block is infinite; else what is wrong.
std::string find_fault(const partition::ComputationGraph& graph, const std::vector<partition::Peer>& peers,
                       const std::vector<partition::BlockReport>& blocks, double bottleneck);

}  // namespace neuroshard::test
