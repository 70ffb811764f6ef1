// A chain on peers whose order in the pipeline is fixed: the exact case, for planners that cut a model's
// layers. The same segment costs and slicing as everywhere in this folder.
#pragma once

#include <cstdint>
#include <vector>

#include "core/partition/search/problem.h"

namespace neuroshard::partition {

struct ChainBlock {
  std::uint32_t peer = 0;   // position in the list of peers; strictly rising, some may be left out
  std::uint32_t first = 0;  // position in the chain
  std::uint32_t count = 0;  // > 0
  double cost = 0;          // in the graph's unit
};

struct ChainPlan {
  double bottleneck = 0;           // the smallest possible with the peers in this order
  std::vector<ChainBlock> blocks;  // all nodes, in order
};

// `order`: every node once, producers first; cuts fall between its positions. A chain has one such order, so
// the plan is optimal for it; for other graphs it is for this order only. Any number of peers.
// Cost: O(n · longest segment · peers), n² · peers at most.
// Errors: those of make_problem() except for more peers than nodes; NotFound when nothing fits the memory.
Expected<ChainPlan> plan_chain(const ComputationGraph& graph, const std::vector<std::uint32_t>& order,
                               const std::vector<Peer>& peers);

}  // namespace neuroshard::partition
