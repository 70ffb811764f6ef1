// Local search over partitions: nodes move between blocks, blocks keep their order in the pipeline.
//
// A node may move to any block between the last of its inputs' blocks and the first of its readers', so the
// quotient stays acyclic. Energy: Σ over blocks of (cost / bottleneck)^p, which sees every block near the
// bottleneck, not only the worst; simulated annealing with a falling temperature. Costs change by the moved
// node's tensors only: a move takes O(degree).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/rng.h"
#include "core/partition/graph/devices.h"
#include "core/partition/graph/tensor_graph.h"

namespace neuroshard::partition {

struct BlockAssignment {
  std::vector<std::uint32_t> block_of;  // per node; blocks in pipeline order
  std::vector<Device> devices;          // of each block
};

struct AnnealingPlan {
  std::uint64_t moves = 100'000;
  double start_temperature = 0.05;  // as a share of the energy of one block at the bottleneck
  std::function<bool()> stop;
};

// The best assignment seen; never worse than `start` in bottleneck. Activations in memory are not looked at,
// parameters are.
BlockAssignment anneal(const TensorGraph& graph, const BlockAssignment& start, const AnnealingPlan& plan,
                       Rng* rng);

// The nodes block by block, within a block in topological order.
std::vector<NodeIndex> order_of_blocks(const TensorGraph& graph, const std::vector<std::uint32_t>& block_of);

}  // namespace neuroshard::partition
