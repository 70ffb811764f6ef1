#include "app/node/partition_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/engine/network_profile.h"
#include "core/placement/graph_json.h"
#include "core/placement/graph_proto.h"
#include "core/placement/neuro_llm_graph.h"
#include "core/placement/onnx_import.h"
#include "core/placement/script_import.h"

namespace neuroshard::app {
namespace {

// Enough of a file to tell its format.
constexpr std::uint64_t head_bytes = 4096;
constexpr std::string_view model_prefix = "model:";

Expected<Bytes> read_head(const std::string& path, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const auto file, context.files.open_read(path));
  Bytes head(static_cast<std::size_t>(std::min(file->size(), head_bytes)));
  NS_RETURN_IF_ERROR(file->read_at(0, head));
  return head;
}

Expected<PartitionInput> timed(placement::CostedGraph costed, const PartitionInputFlags& flags,
                               CommandContext& context) {
  PartitionInput input;
  input.total = costed.total();
  NS_ASSIGN_OR_RETURN(input.machine, partition_machine(flags.machine, context));
  NS_ASSIGN_OR_RETURN(input.graph, placement::with_work(std::move(costed), input.machine->model));
  return input;
}

Expected<PartitionInput> read_json(const PartitionInputFlags& flags, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const Bytes bytes,
                      storage::read_file(context.files, flags.graph, placement::max_graph_file_bytes));
  NS_ASSIGN_OR_RETURN(placement::ComputationGraph graph, placement::parse_graph(bytes));
  return PartitionInput{std::move(graph), {}, {}, {}};
}

Expected<PartitionInput> read_protobuf(const PartitionInputFlags& flags, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const Bytes bytes,
                      storage::read_file(context.files, flags.graph, placement::max_graph_file_bytes));
  NS_ASSIGN_OR_RETURN(placement::ComputationGraph graph, placement::parse_graph_proto(bytes));
  return PartitionInput{std::move(graph), {}, {}, {}};
}

Expected<placement::OnnxOptions> onnx_options(const PartitionInputFlags& flags) {
  placement::OnnxOptions options;
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
  NS_ASSIGN_OR_RETURN(const placement::OnnxOptions options, onnx_options(flags));
  NS_ASSIGN_OR_RETURN(placement::CostedGraph costed, [&]() -> Expected<placement::CostedGraph> {
    NS_ASSIGN_OR_RETURN(const Bytes bytes,
                        storage::read_file(context.files, flags.graph, placement::max_onnx_file_bytes));
    return placement::import_onnx(bytes, options);
  }());
  return timed(std::move(costed), flags, context);
}

Expected<PartitionInput> read_model(const PartitionInputFlags& flags, CommandContext& context) {
  const std::string name = flags.graph.substr(model_prefix.size());
  NS_ASSIGN_OR_RETURN(const engine::NetworkProfile profile,
                      engine::load_network_profile(context.files, name));
  placement::ModelGraphOptions options;
  options.sequences = flags.sequences;
  options.training = flags.training;
  if (flags.level == "slot") options.level = placement::ModelLevel::Slot;
  if (flags.level == "operator") options.level = placement::ModelLevel::Operator;
  NS_ASSIGN_OR_RETURN(placement::CostedGraph costed,
                      placement::model_graph(engine::model_shape(profile.consensus), options));
  return timed(std::move(costed), flags, context);
}

Expected<PartitionInput> read_torch_script(const PartitionInputFlags& flags, CommandContext& context) {
  PartitionInput input;
  NS_ASSIGN_OR_RETURN(input.script, open_script_file(flags.graph, flags.script, context));
  if (flags.costs != "measured") {
    input.total = placement::script_total(*input.script);
    NS_ASSIGN_OR_RETURN(input.machine, partition_machine(flags.machine, context));
  }
  const placement::MachineModel* machine = input.machine ? &input.machine->model : nullptr;
  NS_ASSIGN_OR_RETURN(input.graph, placement::import_script(*input.script, machine));
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
  // A zip archive; what is in it is the compute module's to say.
  if (as_text(head).substr(0, 4) == "PK\x03\x04") return GraphFormat::TorchScript;
  if (placement::is_graph_proto(head)) return GraphFormat::Protobuf;
  if (placement::is_onnx(head)) return GraphFormat::Onnx;
  return GraphFormat::Json;
}

Expected<PartitionInput> read_partition_graph(const PartitionInputFlags& flags, CommandContext& context) {
  auto input = read_any(flags, context);
  if (input.ok()) return input;
  Error error = std::move(input).error();
  // File errors name the path already.
  if (error.message.find(flags.graph) != std::string::npos) return error;
  return std::move(error).with_context(flags.graph);
}

Expected<void> save_graph(const placement::ComputationGraph& graph, const std::string& path,
                          CommandContext& context) {
  if (ends_with(path, ".pb")) {
    return storage::write_file_atomic(context.files, path, placement::format_graph_proto(graph));
  }
  if (ends_with(path, ".json")) {
    return storage::write_file_atomic(context.files, path, as_bytes(placement::format_graph(graph)));
  }
  return make_error(ErrorCode::InvalidArgument,
                    fmt::format("--save-graph {}: the name must end in .json or .pb", path));
}

}  // namespace neuroshard::app
