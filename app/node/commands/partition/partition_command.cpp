// neuroshardd partition --graph FILE --k K [--memory … --bandwidth … --stream-bandwidth … | --peers FILE]
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "app/node/command.h"
#include "app/node/commands/partition/partition_input.h"
#include "app/node/commands/partition/partition_pipeline.h"
#include "app/node/commands/partition/partition_script.h"
#include "app/node/output/quantity.h"
#include "core/base/utf8.h"
#include "core/partition/graph/graph_json.h"
#include "core/partition/render/drawing.h"
#include "core/partition/render/layout_json.h"
#include "core/partition/search/partition.h"
#include "core/platform/process/heap.h"
#include "core/platform/process/input_end.h"
#include "core/platform/sensor/cpu.h"

namespace neuroshard::app {
namespace {

using partition::BlockReport;
using partition::ComputationGraph;
using partition::PartitionResult;
using partition::Peer;

struct PartitionFlags {
  PartitionInputFlags input;
  std::string save, layout;
  std::string peers;
  std::uint32_t k = 0;
  std::string memory, bandwidth, stream_bandwidth;
  double time_limit = 8;
  std::uint64_t seed = 1;
  bool dot = false, svg = false;
  bool run = false;
  std::uint64_t batches = 0;
  bool end_with_stdin = false;
};

// Code that does not check the stop, such as a model's own code, gets this much time.
constexpr Duration end_patience = std::chrono::seconds(5);

// For a program that starts this one and keeps its input open: when that program has ended, nobody needs the
// answer.
Expected<std::unique_ptr<platform::InputEnd>> end_with_input(CommandContext& context) {
  return platform::InputEnd::watch(
      platform::InputEnd::standard_input, [stop = context.stop_signal] { stop->request(); }, end_patience,
      [] { std::_Exit(static_cast<int>(ExitCode::Interrupted)); });
}

Expected<std::vector<Peer>> read_peers(const PartitionFlags& flags, std::size_t nodes,
                                       CommandContext& context) {
  if (flags.k == 0) return make_error(ErrorCode::InvalidArgument, "--k is 0; give at least 1 block");
  if (flags.k > nodes) {
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("--k is {}, but the graph has {} nodes and a block holds at least one; give at most {}",
                    flags.k, nodes, nodes));
  }
  if (flags.peers.empty()) {
    Peer peer;
    if (!flags.memory.empty()) {
      NS_ASSIGN_OR_RETURN(peer.memory, parse_bytes("--memory", flags.memory));
    }
    if (!flags.bandwidth.empty()) {
      NS_ASSIGN_OR_RETURN(peer.bandwidth, parse_bytes("--bandwidth", flags.bandwidth));
    }
    if (!flags.stream_bandwidth.empty()) {
      NS_ASSIGN_OR_RETURN(peer.stream_bandwidth, parse_bytes("--stream-bandwidth", flags.stream_bandwidth));
    }
    std::vector<Peer> peers(flags.k, peer);
    for (std::size_t i = 0; i < peers.size(); ++i) peers[i].name = fmt::format("peer {}", i + 1);
    return peers;
  }
  NS_ASSIGN_OR_RETURN(const Bytes bytes,
                      storage::read_file(context.files, flags.peers, partition::max_graph_file_bytes));
  auto peers = partition::parse_peers(bytes);
  if (!peers.ok()) return std::move(peers).error().with_context(flags.peers);
  if (peers->size() > flags.k) {
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("{} lists {} peers, but --k allows {} blocks; give --k {} or fewer peers",
                                  flags.peers, peers->size(), flags.k, peers->size()));
  }
  return peers;
}

// The source of the times if the graph itself had none; otherwise null.
nlohmann::ordered_json machine_json(const PartitionInput& input) {
  if (!input.machine) return nullptr;
  const partition::MachineModel& model = input.machine->model;
  return {{"flops_per_second", model.flops},  {"memory_bytes_per_second", model.memory_bandwidth},
          {"launch_seconds", model.launch},   {"source", input.machine->source},
          {"graph_flops", input.total.flops}, {"graph_bytes", input.total.bytes}};
}

void print_machine(const PartitionInput& input, Output& output) {
  if (!input.machine) return;
  const partition::MachineModel& model = input.machine->model;
  output.line(fmt::format("machine      {:.4g} GFLOP/s, {:.3g} GB/s, {:.3g} us per operation ({})",
                          model.flops / 1e9, model.memory_bandwidth / 1e9, model.launch * 1e6,
                          input.machine->source));
  output.line(fmt::format("model        {:.5g} GFLOP, {:.4g} GB moved per request", input.total.flops / 1e9,
                          input.total.bytes / 1e9));
}

nlohmann::ordered_json to_json(const PartitionInput& input, const std::vector<Peer>& peers,
                               const PartitionFlags& flags, const PartitionResult& result, double seconds,
                               const std::string& convention) {
  const ComputationGraph& graph = input.graph;
  nlohmann::ordered_json blocks = nlohmann::ordered_json::array();
  for (const BlockReport& block : result.blocks) {
    nlohmann::ordered_json ids = nlohmann::ordered_json::array();
    for (const partition::NodeIndex v : block.nodes) ids.push_back(graph.nodes[v].id);
    blocks.push_back({{"peer", peers[block.device].name},
                      {"cost", block.cost},
                      {"in", block.in},
                      {"work", block.work},
                      {"overflow", block.overflow},
                      {"out", block.out},
                      {"param_bytes", block.params},
                      {"peak_bytes", block.peak},
                      {"nodes", std::move(ids)}});
  }
  return {{"bottleneck", result.bottleneck},
          {"lower_bound", result.lower_bound},
          {"gap", result.gap()},
          {"proved", result.proved()},
          {"simple_bound", result.simple_bound},
          {"certificate", result.certificate},
          {"unit", graph.unit},
          {"per_second", result.bottleneck > 0 ? 1 / (result.bottleneck * graph.unit_seconds) : INFINITY},
          {"k", flags.k},
          {"nodes", graph.nodes.size()},
          {"edges", graph.edge_count()},
          {"seed", flags.seed},
          {"seconds", seconds},
          {"interrupted", result.interrupted},
          {"convention", convention},
          {"machine", machine_json(input)},
          {"blocks", std::move(blocks)}};
}

void print_table(const PartitionInput& input, const std::vector<Peer>& peers, const PartitionResult& result,
                 double seconds, const std::string& convention, Output& output) {
  const ComputationGraph& graph = input.graph;
  output.line(fmt::format("convention   {}", one_line(convention)));
  print_machine(input, output);
  output.line(fmt::format("graph        {} nodes, {} edges", graph.nodes.size(), graph.edge_count()));
  output.line(fmt::format("bottleneck   {:.6g} {}", result.bottleneck, graph.unit));
  output.line(fmt::format("lower bound  {:.6g} {} ({})", result.lower_bound, graph.unit, result.certificate));
  output.line(
      fmt::format("gap          {:.4f} %{}", 100 * result.gap(), result.proved() ? ", proved optimal" : ""));
  output.line(fmt::format("time         {:.2f} s{}", seconds,
                          result.interrupted ? ", stopped before the search was done (--time-limit)" : ""));
  output.line(fmt::format("{:>5} {:<16} {:>6} {:>11} {:>11} {:>11} {:>11} {:>11} {:>12} {:>12}  {}", "block",
                          "peer", "nodes", "cost", "in", "work", "overflow", "out", "parameters", "peak",
                          "first node"));
  for (std::size_t b = 0; b < result.blocks.size(); ++b) {
    const BlockReport& block = result.blocks[b];
    output.line(fmt::format(
        "{:>5} {:<16} {:>6} {:>11.5g} {:>11.5g} {:>11.5g} {:>11.5g} {:>11.5g} {:>12.5g} {:>12.5g}  {}", b + 1,
        one_line(peers[block.device].name), block.nodes.size(), block.cost, block.in, block.work,
        block.overflow, block.out, block.params, block.peak, one_line(graph.nodes[block.nodes[0]].id)));
  }
}

// Without --k: describes the graph, and where it was saved.
void print_saved(const PartitionInput& input, const PartitionFlags& flags, Output& output) {
  const ComputationGraph& graph = input.graph;
  double work = 0, params = 0;
  for (const partition::GraphNode& node : graph.nodes) {
    work += node.work;
    params += node.param_bytes;
  }
  output.line(fmt::format("convention   {}", one_line(graph.convention)));
  print_machine(input, output);
  output.line(fmt::format("graph        {} nodes, {} edges, work {:.6g} {}, {:.6g} bytes of parameters",
                          graph.nodes.size(), graph.edge_count(), work, graph.unit, params));
  output.line(fmt::format("saved        {}", flags.save));
  output.json_line({{"saved", flags.save},
                    {"nodes", graph.nodes.size()},
                    {"edges", graph.edge_count()},
                    {"work", work},
                    {"unit", graph.unit},
                    {"param_bytes", params},
                    {"convention", graph.convention},
                    {"machine", machine_json(input)}});
}

Expected<void> run_partition(const PartitionFlags& flags, bool cut, CommandContext& context) {
  if (!cut && flags.save.empty()) {
    return make_error(ErrorCode::InvalidArgument, "--k is required: the maximum number of blocks");
  }
  if (!(flags.time_limit > 0) || flags.time_limit > 1e6) {
    return make_error(ErrorCode::InvalidArgument, "--time-limit must be a positive number of seconds");
  }
  std::unique_ptr<platform::InputEnd> watch;
  if (flags.end_with_stdin) {
    NS_ASSIGN_OR_RETURN(watch, end_with_input(context));
  }
  PartitionInputFlags input_flags = flags.input;
  input_flags.script.seed = flags.seed;
  if (input_flags.costs.empty() && flags.run) input_flags.costs = "measured";
  // Operations are timed, and the whole model runs, in the same way as the blocks will run.
  if (flags.run) platform::keep_freed_memory();
  // The blocks will run on this machine at the same time, as far as it has enough processors.
  if (flags.run && flags.k > 0) {
    input_flags.script.companions =
        std::min(flags.k, static_cast<std::uint32_t>(platform::cpu_info().usable_cpus)) - 1;
  }
  NS_ASSIGN_OR_RETURN(const PartitionInput input, read_partition_graph(input_flags, context));
  if (flags.run && input.script == nullptr) {
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("{} is not a TorchScript model, and only such a model can run in blocks",
                                  flags.input.graph));
  }
  const ComputationGraph& graph = input.graph;
  if (!flags.save.empty()) NS_RETURN_IF_ERROR(save_graph(graph, flags.save, context));
  if (!cut) {
    print_saved(input, flags, context.output);
    return {};
  }
  const MonotonicTime start = context.clock.monotonic_now();
  NS_ASSIGN_OR_RETURN(std::vector<Peer> peers, read_peers(flags, graph.nodes.size(), context));
  if (flags.run && flags.bandwidth.empty()) {
    NS_ASSIGN_OR_RETURN(const double bandwidth, measure_stream_bandwidth(context));
    for (Peer& peer : peers) peer.bandwidth = bandwidth;
  }
  auto problem = partition::make_problem(graph, peers);
  if (!problem.ok()) return std::move(problem).error().with_context(flags.input.graph);
  partition::PartitionOptions options;
  options.seed = flags.seed;
  options.rounds = 1000;
  options.time_limit = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(flags.time_limit));
  NS_ASSIGN_OR_RETURN(const PartitionResult result,
                      partition::find_partition(*problem, options, context.clock, context.stop));
  const double seconds = to_seconds(context.clock.monotonic_now() - start);
  std::string convention = graph.convention;
  if (graph.printed_transfers && peers.front().bandwidth != partition::unlimited) {
    convention += "; with a bandwidth, a tensor costs its edge's size / bandwidth instead";
  }
  if (!flags.layout.empty()) {
    NS_RETURN_IF_ERROR(storage::write_file_atomic(context.files, flags.layout,
                                                  as_bytes(partition::layout_json(graph, result))));
  }
  if (flags.dot) {
    context.output.raw(partition::to_dot(graph, result));
  } else if (flags.svg) {
    context.output.raw(partition::to_svg(graph, result));
  } else {
    print_table(input, peers, result, seconds, convention, context.output);
    nlohmann::ordered_json object = to_json(input, peers, flags, result, seconds, convention);
    if (flags.run) {
      const ScriptRun run{flags.batches, peers.front().bandwidth};
      NS_ASSIGN_OR_RETURN(object["run"], run_script_blocks(*input.script, graph, result, run, context));
    }
    context.output.json_line(object);
  }
  return {};
}

}  // namespace

void add_input_options(CLI::App& partition, PartitionFlags& flags) {
  PartitionInputFlags& input = flags.input;
  partition
      .add_option("--graph", input.graph,
                  "graph file (JSON or protobuf), ONNX or TorchScript model, or model:PROFILE for the model "
                  "of a profile")
      ->required()
      ->type_name("FILE");
  partition
      .add_option("--save-graph", flags.save, "write the graph with its costs to this file: .json or .pb")
      ->type_name("FILE");
  partition
      .add_option("--flops", input.machine.flops,
                  "matrix product speed of a peer, for a graph without times (default: measured here)")
      ->type_name("FLOP/S");
  partition
      .add_option("--memory-bandwidth", input.machine.memory_bandwidth,
                  "memory bandwidth of a peer, for a graph without times (default: measured here)")
      ->type_name("BYTES/S");
  partition.add_option("--dim", input.dimensions, "size of an open dimension of an ONNX model, like batch=8")
      ->type_name("NAME=SIZE");
  partition.add_option("--level", input.level, "for model:PROFILE: granularity of the nodes")
      ->check(CLI::IsMember({"layer", "slot", "operator"}))
      ->default_str("layer");
  partition.add_option("--sequences", input.sequences, "for model:PROFILE: sequences per request")
      ->default_str("1");
  partition.add_flag("--training", input.training, "for model:PROFILE: include the backward pass");
}

void add_script_options(CLI::App& partition, PartitionFlags& flags) {
  partition
      .add_option("--input-shape", flags.input.script.input_shapes,
                  "for a TorchScript model: shape of an input tensor, like 1x3x224x224 or "
                  "8x128:int64:50000 (integers below 50000); once per tensor")
      ->type_name("SIZES[:TYPE[:BELOW]]")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  partition
      .add_option("--costs", flags.input.costs,
                  "for a TorchScript model: \"model\" (from operations and bytes, as above) or \"measured\" "
                  "(times of its "
                  "operations here, one thread); default: model, with --run measured")
      ->check(CLI::IsMember({"model", "measured"}));
  CLI::Option* run = partition.add_flag("--run", flags.run,
                                        "run the blocks of the TorchScript model as a pipeline of processes "
                                        "on this machine, and compare outputs "
                                        "and speed with the whole model; measures --bandwidth unless given");
  partition.add_option("--batches", flags.batches, "micro-batches to run (default: about two seconds)")
      ->needs(run);
  for (const char* other : {"--peers", "--dot", "--svg"}) run->excludes(partition.get_option(other));
}

void add_partition_command(CLI::App& root, CommandContext& context) {
  auto flags = std::make_shared<PartitionFlags>();
  CLI::App& partition = add_command(
      root, "partition", "Cut a computation graph into pipeline blocks and prove a bound on the result",
      {"neuroshardd partition --graph model.json --k 4 --bandwidth 1e8",
       "neuroshardd partition --graph model.json --k 4 --memory 8GB --bandwidth 1e8 --json",
       "neuroshardd partition --graph model.json --k 8 --peers peers.json --svg > cut.svg", "",
       "neuroshardd partition --graph model.onnx --dim batch=8 --k 4 --bandwidth 1e8",
       "neuroshardd partition --graph model:mainnet --level slot --k 8 --bandwidth 1e8",
       "neuroshardd partition --graph model.onnx --save-graph graph.json",
       "neuroshardd partition --graph model.pt --input-shape 1x3x224x224 --k 2 --run", "",
       "A graph is {\"unit\": \"ms\", \"nodes\": [{\"id\": \"b\", \"op\": \"matmul\", \"work\": 0.5,",
       "\"param_bytes\": 4096, \"output_bytes\": 1024, \"inputs\": [\"a\"]}, ...], \"colocate\": [[\"a\", "
       "\"b\"]]}, or the",
       "same as proto/graph.proto. The public device-placement graphs (nodes with fpgaLatency, edges with",
       "cost) are accepted as well. Models have no times: neuroshardd estimates them from operations and",
       "bytes, --flops and --memory-bandwidth. It detects formats by content. A TorchScript model is a",
       "program and runs here with your permissions to get its sizes. Use only models that you trust.",
       "Peers are [{\"name\": \"x\", \"speed\": 2, \"memory\": 8e9, \"bandwidth\": 1e8, "
       "\"stream_bandwidth\": 0}, ...]."});
  add_input_options(partition, *flags);
  CLI::Option* blocks = partition.add_option("--k", flags->k, "maximum number of blocks, one per peer");
  const auto bytes = [&](const char* name, std::string& target, const char* help, const char* type) {
    return partition.add_option(name, target, help)->type_name(type);
  };
  CLI::Option* memory = bytes("--memory", flags->memory, "memory of each peer (default: no limit)", "BYTES");
  CLI::Option* bandwidth =
      bytes("--bandwidth", flags->bandwidth, "network bandwidth of each peer, each direction", "BYTES/S");
  CLI::Option* stream =
      bytes("--stream-bandwidth", flags->stream_bandwidth,
            "stream parameters that exceed the memory at this rate (default: they must fit)", "BYTES/S");
  CLI::Option* peers =
      partition.add_option("--peers", flags->peers, "file with different peers (JSON)")->type_name("FILE");
  for (CLI::Option* option : {memory, bandwidth, stream}) peers->excludes(option);
  partition.add_option("--time-limit", flags->time_limit, "time limit of the search, in seconds")
      ->default_str("8");
  partition.add_option("--seed", flags->seed, "seed of the random search")->default_str("1");
  CLI::Option* dot = partition.add_flag("--dot", flags->dot, "print the cut graph for Graphviz");
  partition.add_flag("--svg", flags->svg, "print a picture of the cut graph")->excludes(dot);
  partition
      .add_option("--layout", flags->layout,
                  "print the layout of the picture (JSON), for a program that draws it itself")
      ->type_name("FILE");
  partition.add_flag("--end-with-stdin", flags->end_with_stdin,
                     "for programs: stop with the best result so far when standard input ends");
  add_script_options(partition, *flags);
  set_body(partition, context,
           [flags, blocks, &context] { return run_partition(*flags, blocks->count() > 0, context); });
}

}  // namespace neuroshard::app
