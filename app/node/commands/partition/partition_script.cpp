#include "app/node/commands/partition/partition_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/node/commands/partition/partition_pipeline.h"
#include "app/node/commands/partition/script_host.h"
#include "core/platform/process/process_memory.h"
#include "core/platform/sensor/cpu.h"

namespace neuroshard::app {
namespace {

// The largest deviation from the whole model's results that counts as equal, relative to max(1, largest
// value).
constexpr double same_outputs = 1e-5;
constexpr std::uint32_t most_distinct = 4;  // micro-batches with values of their own
constexpr double run_seconds = 2, whole_seconds = 1;
constexpr std::uint64_t fewest_batches = 20, most_batches = 2000;

constexpr std::pair<std::string_view, compute::ScriptType> type_names[] = {
    {"float32", compute::ScriptType::F32}, {"float64", compute::ScriptType::F64},
    {"float16", compute::ScriptType::F16}, {"bfloat16", compute::ScriptType::BF16},
    {"int64", compute::ScriptType::I64},   {"int32", compute::ScriptType::I32},
    {"int16", compute::ScriptType::I16},   {"int8", compute::ScriptType::I8},
    {"uint8", compute::ScriptType::U8},    {"bool", compute::ScriptType::Bool}};

bool parse_count(std::string_view text, std::int64_t least, std::int64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() && *value >= least;
}

std::string_view next_part(std::string_view& rest, char separator) {
  const std::size_t at = rest.find(separator);
  const std::string_view part = rest.substr(0, at);
  rest = at == std::string_view::npos ? std::string_view() : rest.substr(at + 1);
  return part;
}

Expected<void> checked(const compute::Status& status) {
  if (status.ok()) return {};
  return compute::to_error(status);
}

// Measures micro-batches per second of the whole model in this process, over about a second, with at most as
// many as the pipeline gets.
Expected<double> whole_rate(compute::ScriptModel& model, std::uint32_t distinct, std::uint64_t most,
                            CommandContext& context) {
  for (std::uint32_t i = 0; i < distinct; ++i) NS_RETURN_IF_ERROR(checked(model.run_whole(i)));
  const MonotonicTime start = context.clock.monotonic_now();
  for (std::uint32_t runs = 1;; ++runs) {
    NS_RETURN_IF_ERROR(checked(model.run_whole(runs % distinct)));
    const double seconds = to_seconds(context.clock.monotonic_now() - start);
    if (context.stop.cancelled()) return make_error(ErrorCode::Cancelled, "stopped");
    if ((seconds >= whole_seconds || runs >= most) && runs >= 3) return runs / seconds;
  }
}

struct Prediction {
  double seconds = 0;  // per micro-batch
  std::size_t slowest = 0;
  bool processors = false;  // true: there are fewer processors than the blocks could use
};

// The time of a block is its cost and, beyond the graph, the model's arguments and results that it passes on.
Prediction predict(const compute::ScriptModel& model, const partition::ComputationGraph& graph,
                   const partition::PartitionResult& result, double bandwidth, int processors) {
  std::vector<double> seconds;
  for (const partition::BlockReport& block : result.blocks)
    seconds.push_back(block.cost * graph.unit_seconds);
  for (std::uint32_t i = 0; i < model.link_count(); ++i) {
    const compute::ScriptLink link = model.link(i);
    if (link.from == compute::script_driver) seconds[link.to] += link.bytes / bandwidth;
    if (link.to == compute::script_driver) seconds[link.from] += link.bytes / bandwidth;
  }
  Prediction prediction;
  prediction.slowest =
      static_cast<std::size_t>(std::max_element(seconds.begin(), seconds.end()) - seconds.begin());
  prediction.seconds = seconds[prediction.slowest];
  double all = 0;
  for (const double one : seconds) all += one;
  prediction.processors = all / processors > prediction.seconds;
  prediction.seconds = std::max(prediction.seconds, all / processors);
  return prediction;
}

}  // namespace

Expected<compute::ScriptSample> parse_input_shape(const std::string& text) {
  const Error wrong = make_error(
      ErrorCode::InvalidArgument,
      fmt::format("--input-shape is \"{}\"; give sizes like 1x3x224x224, or 8x128:int64:50000 for integers "
                  "below 50000 (types: float32, float64, float16, bfloat16, int64, int32, int16, int8, "
                  "uint8, bool)",
                  text));
  std::string_view rest = text;
  std::string_view sizes = next_part(rest, ':');
  const std::string_view type = next_part(rest, ':');
  compute::ScriptSample sample;
  if (!rest.empty() && !parse_count(rest, 1, &sample.below)) return wrong;
  if (!type.empty()) {
    const auto* const named = std::find_if(std::begin(type_names), std::end(type_names),
                                           [&](const auto& entry) { return entry.first == type; });
    if (named == std::end(type_names)) return wrong;
    sample.type = named->second;
  }
  if (sizes == "scalar") return sample;
  do {
    const std::string_view size = next_part(sizes, 'x');
    if (sample.dims == compute::max_script_dims) return wrong;
    if (!parse_count(size, 0, &sample.sizes[sample.dims++])) return wrong;
  } while (!sizes.empty());
  return text.back() == 'x' ? Expected<compute::ScriptSample>(wrong) : sample;
}

Expected<compute::ScriptModelPtr> open_script_file(const std::string& path, const ScriptFlags& flags,
                                                   CommandContext& context) {
  std::vector<compute::ScriptSample> samples;
  for (const std::string& text : flags.input_shapes) {
    NS_ASSIGN_OR_RETURN(const compute::ScriptSample sample, parse_input_shape(text));
    samples.push_back(sample);
  }
  NS_ASSIGN_OR_RETURN(const auto file, context.files.open_read(path));
  compute::ModuleOptions module_options;
  module_options.threads = 1;
  // The model's own code decides how much it allocates.
  module_options.memory_limit = platform::available_memory().available / 10 * 9;
  NS_ASSIGN_OR_RETURN(const compute::LoadedModule loaded,
                      compute::load_module("cpu", module_options, context.logger));
  compute::ScriptOptions options;
  options.samples = samples;
  options.seed = flags.seed;
  options.companions = flags.companions;
  const FileScriptHost host(*file, context.clock);
  auto model = compute::open_script(*loaded.module, host, options);
  if (!model.ok() && samples.empty() && model.error().code == ErrorCode::InvalidArgument) {
    Error error = std::move(model).error();
    error.message += " (--input-shape, once per tensor)";
    return error;
  }
  return model;
}

Expected<nlohmann::ordered_json> run_script_blocks(compute::ScriptModel& model,
                                                   const partition::ComputationGraph& graph,
                                                   const partition::PartitionResult& result,
                                                   const ScriptRun& run, CommandContext& context) {
  const auto blocks = static_cast<std::uint32_t>(result.blocks.size());
  std::vector<std::uint32_t> block_of(graph.nodes.size());
  for (std::uint32_t b = 0; b < blocks; ++b) {
    for (const partition::NodeIndex v : result.blocks[b].nodes) block_of[v] = b;
  }
  NS_RETURN_IF_ERROR(checked(model.cut(block_of, blocks)));
  const int processors = platform::cpu_info().usable_cpus;
  const Prediction prediction = predict(model, graph, result, run.bandwidth, processors);
  PipelineOptions options;
  options.batches =
      run.batches != 0
          ? run.batches
          : std::clamp(static_cast<std::uint64_t>(run_seconds /
                                                  std::max(prediction.seconds, run_seconds / most_batches)),
                       fewest_batches, most_batches);
  const auto distinct = static_cast<std::uint32_t>(std::min<std::uint64_t>(options.batches, most_distinct));
  NS_RETURN_IF_ERROR(checked(model.make_batches(distinct)));
  NS_ASSIGN_OR_RETURN(const double whole, whole_rate(model, distinct, options.batches, context));
  options.batch_seconds = 1 / whole;
  NS_ASSIGN_OR_RETURN(const PipelineReport report, run_pipeline(model, blocks, distinct, options, context));

  const double predicted = prediction.seconds > 0 ? 1 / prediction.seconds : INFINITY;
  const bool same = report.deviation.relative <= same_outputs;
  if (!same) context.exit_code = ExitCode::Failure;
  Output& output = context.output;
  output.line(fmt::format("run          {} processes of one thread on {} processors, {} micro-batches",
                          blocks, processors, options.batches));
  output.line(fmt::format("connection   {:.3g} GB/s between two of them", run.bandwidth / 1e9));
  output.line(fmt::format("outputs      {}: largest deviation {:.3g}, relative {:.3g} (limit {:g})",
                          same ? "the same as the whole model's" : "DIFFERENT from the whole model's",
                          report.deviation.absolute, report.deviation.relative, same_outputs));
  output.line(fmt::format("throughput   {:.5g} micro-batches/s measured; {:.5g} predicted ({}), {:+.1f} %",
                          report.per_second, predicted,
                          prediction.processors
                              ? std::string("all blocks share the processors")
                              : fmt::format("block {} is the slowest", prediction.slowest + 1),
                          100 * (report.per_second / predicted - 1)));
  output.line(
      fmt::format("whole model  {:.5g} micro-batches/s in one process of one thread: {:.2f} times as fast "
                  "in blocks",
                  whole, report.per_second / whole));
  return nlohmann::ordered_json{{"workers", blocks},
                                {"processors", processors},
                                {"batches", options.batches},
                                {"per_second", report.per_second},
                                {"predicted_per_second", predicted},
                                {"predicted_by", prediction.processors ? "processors" : "slowest block"},
                                {"whole_per_second", whole},
                                {"stream_bandwidth", run.bandwidth},
                                {"compared", report.compared},
                                {"largest_deviation", report.deviation.absolute},
                                {"largest_relative_deviation", report.deviation.relative},
                                {"same_outputs", same},
                                {"block_file_bytes", report.block_bytes}};
}

}  // namespace neuroshard::app
