// The graph that `partition --graph FILE` names, whatever format the file has: told by its content, never by
// its name. One reader per format.
#pragma once

#include <string>

#include "app/node/command.h"
#include "core/placement/graph.h"

namespace neuroshard::app {

enum class GraphFormat { Json };

// By the first bytes of a file. JSON where nothing else is recognised: its parser says what is wrong.
GraphFormat detect_graph_format(ByteSpan head);

// What the command line says about reading the file.
struct PartitionInputFlags {
  std::string graph;  // path
};

// Errors carry the path.
Expected<placement::ComputationGraph> read_partition_graph(const PartitionInputFlags& flags,
                                                           CommandContext& context);

}  // namespace neuroshard::app
