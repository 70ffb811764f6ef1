// Graphs as Protocol Buffers files: proto/graph.proto says what stands in them.
#pragma once

#include "core/base/bytes.h"
#include "core/partition/graph/graph.h"

namespace neuroshard::partition {

// Whether a file's first bytes are those of this form, of whatever version.
bool is_graph_proto(ByteSpan head);

// A graph that validate() accepts. Unknown fields are skipped.  Corrupt: not the format, or cut off;
// InvalidArgument: what the JSON reader refuses as well; Exhausted: longer than max_graph_file_bytes;
// Unsupported: another version.
Expected<ComputationGraph> parse_graph_proto(ByteSpan bytes);

// parse_graph_proto(format_graph_proto(g)) = g for every valid graph, with inputs sorted.
Bytes format_graph_proto(const ComputationGraph& graph);

}  // namespace neuroshard::partition
