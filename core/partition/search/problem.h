// A graph, peers and co-location as the algorithms take them, and the check of a finished partition.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/partition/graph/devices.h"
#include "core/partition/graph/graph.h"
#include "core/partition/graph/tensor_graph.h"

namespace neuroshard::partition {

struct Problem {
  TensorGraph graph;  // one node per node of the input, one tensor per node that somebody reads
  std::vector<Device> devices;
  Grouping colocated;         // what must share a block, closed under cycles of the quotient
  bool memory_binds = false;  // false: everything fits everywhere, memory plays no part
};

// `peers`: one per block at most, at least one. Units: bytes and seconds become the graph's unit of time.
// InvalidArgument: the graph is not valid; more peers than nodes; a peer's numbers make no sense; tensors
// have sizes but no bandwidth is given; a node (with all that must share its block) has more parameters or
// larger tensors than any peer's memory; all parameters together don't fit: each names the node or says what
// is missing.
Expected<Problem> make_problem(const ComputationGraph& graph, const std::vector<Peer>& peers);

// The same without the limit on the number of peers: for pipelines that may leave peers out.
Expected<Problem> make_pipeline_problem(const ComputationGraph& graph, const std::vector<Peer>& peers);

struct BlockReport {
  std::uint32_t device = 0;                        // position in Problem::devices, and in the list of peers
  std::vector<NodeIndex> nodes;                    // in an order in which the peer can run them
  double work = 0, in = 0, out = 0, overflow = 0;  // times on this device
  double cost = 0;                                 // their sum
  double params = 0, peak = 0;                     // bytes
};

// Costs of the given blocks, in pipeline order, empty ones left out: block_of per node, device per block.
// `order` is topological; inside a block nodes run in it, which decides the peak. Infinite cost where a block
// does not fit.
std::vector<BlockReport> report_blocks(const Problem& problem, const std::vector<std::uint32_t>& block_of,
                                       const std::vector<std::uint32_t>& device_of_block,
                                       const std::vector<NodeIndex>& order);

}  // namespace neuroshard::partition
