// The graph that is to be partitioned, as a file or a model describes it, and what is said about it to
// people.
//
// Model (Max-Throughput Partitioning Problem, arXiv 2311.03703): every node runs once per request, has one
// output tensor, and keeps its parameters on the peer that runs it. A tensor that is needed in another block
// is sent once by its block and received once by each block that consumes it, whatever its fan-out there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/expected.h"

namespace neuroshard::partition {

// Bounds on what a file may ask for. The reason of the counts: segment costs of 20,000 nodes still fit into
// seconds, and 64 inputs on average are far above any network's.
inline constexpr std::size_t max_nodes = 100'000;
inline constexpr std::size_t max_edges = 2'000'000;
inline constexpr std::uint64_t max_graph_file_bytes = 64u << 20;
inline constexpr std::size_t max_id_length = 256;
// Work and costs in the graph's unit, and sizes in bytes: beyond it (more than an exabyte) a number is a
// slip.
inline constexpr double max_quantity = 1e18;
inline constexpr std::uint32_t max_blocks = 4096;

struct GraphNode {
  std::string id;                     // unique, not empty
  std::string op;                     // what it does, for people; may be empty
  double work = 0;                    // native work on a peer of speed 1, in the graph's unit of time
  double param_bytes = 0;             // kept on the peer
  double output_bytes = 0;            // of the one output tensor
  double transfer = 0;                // time to send or receive the output once, where the file prints it
  std::vector<std::uint32_t> inputs;  // positions in ComputationGraph::nodes; each at most once
};

struct ComputationGraph {
  std::vector<GraphNode> nodes;
  // Sets of nodes that must share a block (weights used twice, views of one buffer).
  std::vector<std::vector<std::uint32_t>> colocated;
  // True when `transfer` of the nodes counts unless a bandwidth is given; false: bytes / bandwidth.
  bool printed_transfers = false;
  std::string unit = "s";   // of work and transfer
  double unit_seconds = 1;  // seconds in one unit
  std::string convention;   // how the file was read, for the output

  std::size_t edge_count() const;
};

// The conditions that a graph must satisfy before anything else reads it: ids present and unique, quantities
// finite, not negative and at most max_quantity, inputs in range, no node its own input, no cycle.
// InvalidArgument names the node (for a cycle: a cycle of nodes).
Expected<void> validate(const ComputationGraph& graph);

// Names the unit of work: "s" (also when empty), "ms" or "us"; else InvalidArgument.
Expected<void> set_unit(ComputationGraph* graph, const std::string& unit);

}  // namespace neuroshard::partition
