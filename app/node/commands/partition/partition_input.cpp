#include "app/node/commands/partition/partition_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/config/network_profile.h"
#include "core/partition/graph/graph_json.h"
#include "core/partition/graph/graph_proto.h"
#include "core/partition/import/neuro_llm_graph.h"
#include "core/partition/import/onnx_import.h"
#include "core/partition/import/script_import.h"

namespace neuroshard::app {
namespace {

// Enough of a file to detect its format.
constexpr std::uint64_t head_bytes = 4096;
constexpr std::string_view model_prefix = "model:";

Expected<Bytes> read_head(const std::string& path, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const auto file, context.files.open_read(path));
  Bytes head(static_cast<std::size_t>(std::min(file->size(), head_bytes)));
  NS_RETURN_IF_ERROR(file->read_at(0, head));
  return head;
}

Expected<PartitionInput> timed(partition::CostedGraph costed, const PartitionInputFlags& flags,
                               CommandContext& context) {
  PartitionInput input;
  input.total = costed.total();
  NS_ASSIGN_OR_RETURN(input.machine, partition_machine(flags.machine, context));
  NS_ASSIGN_OR_RETURN(input.graph, partition::with_work(std::move(costed), input.machine->model));
  return input;
}

Expected<PartitionInput> read_json(const PartitionInputFlags& flags, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const Bytes bytes,
                      storage::read_file(context.files, flags.graph, partition::max_graph_file_bytes));
  NS_ASSIGN_OR_RETURN(partition::ComputationGraph graph, partition::parse_graph(bytes));
  return PartitionInput{std::move(graph), {}, {}, {}};
}

Expected<PartitionInput> read_protobuf(const PartitionInputFlags& flags, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const Bytes bytes,
                      storage::read_file(context.files, flags.graph, partition::max_graph_file_bytes));
  NS_ASSIGN_OR_RETURN(partition::ComputationGraph graph, partition::parse_graph_proto(bytes));
  return PartitionInput{std::move(graph), {}, {}, {}};
}

Expected<partition::OnnxOptions> onnx_options(const PartitionInputFlags& flags) {
  partition::OnnxOptions options;
  for (const std::string& text : flags.dimensions) {
    const std::size_t at = text.rfind('=');
    std::int64_t size = 0;
    const char* end = text.data() + text.size();
    const auto parsed =
        at == std::string::npos ? std::from_chars_result{} : std::from_chars(text.data() + at + 1, end, size);
    if (at == std::string::npos || at == 0 || parsed.ec != std::errc() || parsed.ptr != end || size < 1 ||
        size > 1'000'000'000) {
      return make_error(ErrorCode::InvalidArgument,
                        fmt::format("--dim is \"{}\"; give NAME=SIZE, like batch=8", text));
    }
    options.dimensions[text.substr(0, at)] = size;
  }
  return options;
}

Expected<PartitionInput> read_onnx(const PartitionInputFlags& flags, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const partition::OnnxOptions options, onnx_options(flags));
  NS_ASSIGN_OR_RETURN(partition::CostedGraph costed, [&]() -> Expected<partition::CostedGraph> {
    NS_ASSIGN_OR_RETURN(const Bytes bytes,
                        storage::read_file(context.files, flags.graph, partition::max_onnx_file_bytes));
    return partition::import_onnx(bytes, options);
  }());
  return timed(std::move(costed), flags, context);
}

Expected<PartitionInput> read_model(const PartitionInputFlags& flags, CommandContext& context) {
  const std::string name = flags.graph.substr(model_prefix.size());
  NS_ASSIGN_OR_RETURN(const config::NetworkProfile profile,
                      config::load_network_profile(context.files, name));
  partition::ModelGraphOptions options;
  options.sequences = flags.sequences;
  options.training = flags.training;
  if (flags.level == "slot") options.level = partition::ModelLevel::Slot;
  if (flags.level == "operator") options.level = partition::ModelLevel::Operator;
  NS_ASSIGN_OR_RETURN(partition::CostedGraph costed,
                      partition::model_graph(config::model_shape(profile.consensus), options));
  return timed(std::move(costed), flags, context);
}

Expected<PartitionInput> read_torch_script(const PartitionInputFlags& flags, CommandContext& context) {
  PartitionInput input;
  NS_ASSIGN_OR_RETURN(input.script, open_script_file(flags.graph, flags.script, context));
  if (flags.costs != "measured") {
    input.total = partition::script_total(*input.script);
    NS_ASSIGN_OR_RETURN(input.machine, partition_machine(flags.machine, context));
  }
  const partition::MachineModel* machine = input.machine ? &input.machine->model : nullptr;
  NS_ASSIGN_OR_RETURN(input.graph, partition::import_script(*input.script, machine));
  return input;
}

Expected<PartitionInput> read_any(const PartitionInputFlags& flags, CommandContext& context) {
  if (flags.graph.rfind(model_prefix, 0) == 0) return read_model(flags, context);
  NS_ASSIGN_OR_RETURN(const Bytes head, read_head(flags.graph, context));
  switch (detect_graph_format(head)) {
    case GraphFormat::Json: return read_json(flags, context);
    case GraphFormat::Protobuf: return read_protobuf(flags, context);
    case GraphFormat::Onnx: return read_onnx(flags, context);
    case GraphFormat::TorchScript: return read_torch_script(flags, context);
  }
  return make_error(ErrorCode::Internal, "a graph format without a reader");
}

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && std::string_view(text).substr(text.size() - end.size()) == end;
}

}  // namespace

GraphFormat detect_graph_format(ByteSpan head) {
  // A zip archive; the compute module checks its content.
  if (as_text(head).substr(0, 4) == "PK\x03\x04") return GraphFormat::TorchScript;
  if (partition::is_graph_proto(head)) return GraphFormat::Protobuf;
  if (partition::is_onnx(head)) return GraphFormat::Onnx;
  return GraphFormat::Json;
}

Expected<PartitionInput> read_partition_graph(const PartitionInputFlags& flags, CommandContext& context) {
  auto input = read_any(flags, context);
  if (input.ok()) return input;
  Error error = std::move(input).error();
  // File errors already name the path.
  if (error.message.find(flags.graph) != std::string::npos) return error;
  return std::move(error).with_context(flags.graph);
}

Expected<void> save_graph(const partition::ComputationGraph& graph, const std::string& path,
                          CommandContext& context) {
  if (ends_with(path, ".pb")) {
    return storage::write_file_atomic(context.files, path, partition::format_graph_proto(graph));
  }
  if (ends_with(path, ".json")) {
    return storage::write_file_atomic(context.files, path, as_bytes(partition::format_graph(graph)));
  }
  return make_error(ErrorCode::InvalidArgument,
                    fmt::format("--save-graph {}: the name must end in .json or .pb", path));
}

}  // namespace neuroshard::app
