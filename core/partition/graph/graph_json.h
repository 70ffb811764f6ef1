// Graphs and peers from JSON files. The only file of this folder that knows a JSON library.
//
// Our own form:
//   {"unit": "s",                                  seconds in one unit of work: "s" (default), "ms", "us"
//    "nodes": [{"id": "b", "op": "matmul",         id: text or integer, required, unique; op: optional text
//               "work": 0.5,                       time on a peer of speed 1, required
//               "param_bytes": 4096,               optional, 0
//               "output_bytes": 1024,              optional, 0
//               "transfer": 0.1,                   optional, 0: see printed_transfers
//               "inputs": ["a"]}],                 optional, ids of nodes whose output this one reads
//    "colocate": [["a", "b"]],                     optional, sets of ids that must share a block
//    "printed_transfers": true,                    optional: without a bandwidth, tensors cost their
//    "transfer" "convention": "…"}                            optional text: how the numbers came about
// Unknown fields of a node are errors (a misspelt one would count as 0); unknown top-level fields are
// ignored.
//
// Public device-placement graphs (known by their "edges"): work = a node's fpgaLatency, parameters = its
// size, in milliseconds and bytes; a tensor costs its edge's cost as printed, once per producer for each
// consuming block and once on output (where a producer's edges print several costs, the largest); colorClass,
// isBackwardNode, max* and supported* are ignored.
//
// Peers: [{"name": "a", "speed": 1, "memory": 8e9, "bandwidth": 1e8, "stream_bandwidth": 0}, …], or an object
// with that list as "peers". Only what differs from Peer's defaults must be given.
#pragma once

#include "core/base/bytes.h"
#include "core/partition/graph/devices.h"
#include "core/partition/graph/graph.h"

namespace neuroshard::partition {

// A graph that validate() accepts. InvalidArgument says what is wrong and names the node; Exhausted when the
// text is longer than max_graph_file_bytes.
Expected<ComputationGraph> parse_graph(ByteSpan json);

// Our own form; parse_graph(format_graph(g)) = g for every valid graph of UTF-8 ids, with inputs sorted.
std::string format_graph(const ComputationGraph& graph);

Expected<std::vector<Peer>> parse_peers(ByteSpan json);

}  // namespace neuroshard::partition
