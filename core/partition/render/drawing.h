// Pictures of a partitioned graph.
#pragma once

#include <string>

#include "core/partition/search/partition.h"

namespace neuroshard::partition {

// Above this many nodes a picture shows blocks and what passes between them, not nodes.
inline constexpr std::size_t max_drawn_nodes = 1200;

// Graphviz source: a cluster per block, tensors that are cut in colour.
std::string to_dot(const ComputationGraph& graph, const PartitionResult& result);

// An SVG document of its own layout: a caption with bottleneck and gap, a legend with the load of each block
// (receiving, work, sending, streaming) on one scale with the slowest marked, and the graph: one column and
// colour per block, one line per tensor and consuming block, as it is charged. UTF-8; no scripts, no
// references.
std::string to_svg(const ComputationGraph& graph, const PartitionResult& result);

}  // namespace neuroshard::partition
