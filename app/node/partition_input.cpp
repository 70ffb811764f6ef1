#include "app/node/partition_input.h"

#include <algorithm>

#include "core/placement/graph_json.h"

namespace neuroshard::app {
namespace {

using placement::ComputationGraph;

// Enough of a file to tell its format.
constexpr std::uint64_t head_bytes = 4096;

Expected<Bytes> read_head(const std::string& path, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const auto file, context.files.open_read(path));
  Bytes head(static_cast<std::size_t>(std::min(file->size(), head_bytes)));
  NS_RETURN_IF_ERROR(file->read_at(0, head));
  return head;
}

Expected<ComputationGraph> read_json(const PartitionInputFlags& flags, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const Bytes bytes,
                      storage::read_file(context.files, flags.graph, placement::max_graph_file_bytes));
  return placement::parse_graph(bytes);
}

Expected<ComputationGraph> read_any(const PartitionInputFlags& flags, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const Bytes head, read_head(flags.graph, context));
  switch (detect_graph_format(head)) {
    case GraphFormat::Json: return read_json(flags, context);
  }
  return make_error(ErrorCode::Internal, "a graph format without a reader");
}

}  // namespace

GraphFormat detect_graph_format(ByteSpan) {
  return GraphFormat::Json;
}

Expected<ComputationGraph> read_partition_graph(const PartitionInputFlags& flags, CommandContext& context) {
  auto graph = read_any(flags, context);
  if (graph.ok()) return graph;
  Error error = std::move(graph).error();
  // File errors name the path already.
  if (error.message.find(flags.graph) != std::string::npos) return error;
  return std::move(error).with_context(flags.graph);
}

}  // namespace neuroshard::app
