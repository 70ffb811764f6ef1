// The graph that `partition --graph` names: a file of a known format, recognised by its content and never by
// its name, or one of our own models ("model:solo"). One reader per format.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/node/commands/partition/partition_machine.h"
#include "app/node/commands/partition/partition_script.h"
#include "core/partition/graph/graph.h"

namespace neuroshard::app {

enum class GraphFormat { Json, Protobuf, Onnx, TorchScript };

// By the first bytes of a file. JSON where nothing else is recognised: its parser says what is wrong.
GraphFormat detect_graph_format(ByteSpan head);

// The flags for reading the graph.
struct PartitionInputFlags {
  std::string graph;  // path, or "model:" and a profile's name or file
  MachineFlags machine;
  std::vector<std::string> dimensions;  // "name=size", of an ONNX model
  std::string level = "layer";          // "layer", "slot", "operator": of our own model
  std::uint32_t sequences = 1;          // of a request to our own model
  bool training = false;                // our own model with its backward pass
  ScriptFlags script;                   // of a TorchScript model
  std::string costs;                    // of a TorchScript model: "model" (empty as well) or "measured"
};

struct PartitionInput {
  partition::ComputationGraph graph;
  // Where the graph came without times: what made them, and what all nodes do together.
  std::optional<Machine> machine;
  partition::OperationCost total;
  // A TorchScript model, which can be run in blocks; null for everything else.
  compute::ScriptModelPtr script;
};

// Errors carry the path.
Expected<PartitionInput> read_partition_graph(const PartitionInputFlags& flags, CommandContext& context);

// Writes the graph as JSON or protobuf, by the path's end: ".json" or ".pb". Replaces a file atomically.
Expected<void> save_graph(const partition::ComputationGraph& graph, const std::string& path,
                          CommandContext& context);

}  // namespace neuroshard::app
