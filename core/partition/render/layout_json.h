// Where the boxes of a partitioned graph's picture stand, for programs that draw it themselves (the desktop
// app, with its own colours and hints under the mouse).
#pragma once

#include <string>

#include "core/partition/search/partition.h"

namespace neuroshard::partition {

// JSON, lengths in pixels of the SVG picture (drawing.h): {"width", "height", "top" (of the columns), "box":
// [width, height],
// "columns": [{"left", "width", "bottom"} per block], "nodes": [{"id", "op", "block", "row", "x", "y"
// (centre), "work", "param_bytes", "output_bytes"}], "edges": [[producer, consumer], …] (positions in
// "nodes"), "contracted": bool}. Above max_drawn_nodes a "node" is a whole block and "contracted" is true.
std::string layout_json(const ComputationGraph& graph, const PartitionResult& result);

}  // namespace neuroshard::partition
