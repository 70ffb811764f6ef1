// Pictures of a partitioned graph.
#pragma once

#include <string>

#include "core/placement/partition.h"

namespace neuroshard::placement {

// Above this many nodes a picture shows blocks and what passes between them, not nodes.
inline constexpr std::size_t max_drawn_nodes = 600;

// Graphviz source: a cluster per block, tensors that are cut in colour.
std::string to_dot(const ComputationGraph& graph, const PartitionResult& result);

// An SVG document of its own layout: blocks as bands from top to bottom, nodes in layers by their longest
// path inside the block, ordered by the mean position of their inputs and readers. UTF-8; no scripts, no
// references.
std::string to_svg(const ComputationGraph& graph, const PartitionResult& result);

}  // namespace neuroshard::placement
