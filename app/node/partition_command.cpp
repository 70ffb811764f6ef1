// neuroshardd partition --graph FILE --k K [--memory … --bandwidth … --stream-bandwidth … | --peers FILE]
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/node/command.h"
#include "app/node/partition_input.h"
#include "core/placement/drawing.h"
#include "core/placement/graph_json.h"
#include "core/placement/partition.h"

namespace neuroshard::app {
namespace {

using placement::BlockReport;
using placement::ComputationGraph;
using placement::PartitionResult;
using placement::Peer;

struct PartitionFlags {
  PartitionInputFlags input;
  std::string peers;
  std::uint32_t k = 0;
  std::string memory, bandwidth, stream_bandwidth;
  double time_limit = 8;
  std::uint64_t seed = 1;
  bool dot = false, svg = false;
};

// "4096", "8e9", "512MiB", "1.5GB".
Expected<double> parse_bytes(const std::string& flag, const std::string& text) {
  static constexpr std::pair<std::string_view, double> units[] = {
      {"KiB", 1024.}, {"MiB", 1048576.}, {"GiB", 1073741824.}, {"TiB", 1099511627776.},
      {"KB", 1e3},    {"MB", 1e6},       {"GB", 1e9},          {"TB", 1e12},
      {"B", 1}};
  std::string number = text;
  double unit = 1;
  for (const auto& [name, factor] : units) {
    if (number.size() <= name.size() || number.substr(number.size() - name.size()) != name) continue;
    number.resize(number.size() - name.size());
    unit = factor;
    break;
  }
  double value = 0;
  if (!CLI::detail::lexical_cast(number, value) || !std::isfinite(value) || !(value > 0) ||
      value * unit > placement::max_quantity) {
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("{} is \"{}\"; give a positive number of bytes like 8e9 or 512MiB", flag, text));
  }
  return value * unit;
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
                      storage::read_file(context.files, flags.peers, placement::max_graph_file_bytes));
  auto peers = placement::parse_peers(bytes);
  if (!peers.ok()) return std::move(peers).error().with_context(flags.peers);
  if (peers->size() > flags.k) {
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("{} lists {} peers, but --k allows {} blocks; give --k {} or fewer peers",
                                  flags.peers, peers->size(), flags.k, peers->size()));
  }
  return peers;
}

nlohmann::ordered_json to_json(const ComputationGraph& graph, const std::vector<Peer>& peers,
                               const PartitionFlags& flags, const PartitionResult& result, double seconds,
                               const std::string& convention) {
  nlohmann::ordered_json blocks = nlohmann::ordered_json::array();
  for (const BlockReport& block : result.blocks) {
    nlohmann::ordered_json ids = nlohmann::ordered_json::array();
    for (const placement::NodeIndex v : block.nodes) ids.push_back(graph.nodes[v].id);
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
          {"blocks", std::move(blocks)}};
}

void print_table(const ComputationGraph& graph, const std::vector<Peer>& peers, const PartitionResult& result,
                 double seconds, const std::string& convention, Output& output) {
  output.line(fmt::format("convention   {}", convention));
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
        peers[block.device].name, block.nodes.size(), block.cost, block.in, block.work, block.overflow,
        block.out, block.params, block.peak, graph.nodes[block.nodes[0]].id));
  }
}

Expected<void> run_partition(const PartitionFlags& flags, CommandContext& context) {
  if (!(flags.time_limit > 0) || flags.time_limit > 1e6) {
    return make_error(ErrorCode::InvalidArgument, "--time-limit must be a positive number of seconds");
  }
  const MonotonicTime start = context.clock.monotonic_now();
  NS_ASSIGN_OR_RETURN(const ComputationGraph graph, read_partition_graph(flags.input, context));
  NS_ASSIGN_OR_RETURN(const std::vector<Peer> peers, read_peers(flags, graph.nodes.size(), context));
  auto problem = placement::make_problem(graph, peers);
  if (!problem.ok()) return std::move(problem).error().with_context(flags.input.graph);
  placement::PartitionOptions options;
  options.seed = flags.seed;
  options.rounds = 1000;
  options.time_limit = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(flags.time_limit));
  NS_ASSIGN_OR_RETURN(const PartitionResult result,
                      placement::partition(*problem, options, context.clock, context.stop));
  const double seconds = to_seconds(context.clock.monotonic_now() - start);
  std::string convention = graph.convention;
  if (graph.printed_transfers && peers.front().bandwidth != placement::unlimited) {
    convention += "; a bandwidth is given, so that a tensor costs its edge's size / bandwidth instead";
  }
  if (flags.dot) {
    context.output.raw(placement::to_dot(graph, result));
  } else if (flags.svg) {
    context.output.raw(placement::to_svg(graph, result));
  } else {
    print_table(graph, peers, result, seconds, convention, context.output);
    context.output.json_line(to_json(graph, peers, flags, result, seconds, convention));
  }
  return {};
}

}  // namespace

void add_partition_command(CLI::App& root, CommandContext& context) {
  auto flags = std::make_shared<PartitionFlags>();
  CLI::App& partition = add_command(
      root, "partition", "Cut a computation graph into pipeline blocks, with a proof of how good they are",
      {"neuroshardd partition --graph model.json --k 4 --bandwidth 1e8",
       "neuroshardd partition --graph model.json --k 4 --memory 8GB --bandwidth 1e8 --json",
       "neuroshardd partition --graph model.json --k 8 --peers peers.json --svg > cut.svg", "",
       "A graph is {\"unit\": \"ms\", \"nodes\": [{\"id\": \"b\", \"op\": \"matmul\", \"work\": 0.5,",
       "\"param_bytes\": 4096, \"output_bytes\": 1024, \"inputs\": [\"a\"]}, ...], \"colocate\": [[\"a\", "
       "\"b\"]]}; the",
       "public device-placement graphs (nodes with fpgaLatency, edges with cost) are read as well.",
       "Peers are [{\"name\": \"x\", \"speed\": 2, \"memory\": 8e9, \"bandwidth\": 1e8, "
       "\"stream_bandwidth\": 0}, ...]."});
  partition.add_option("--graph", flags->input.graph, "graph file (JSON)")->required()->type_name("FILE");
  partition.add_option("--k", flags->k, "at most this many blocks, one per peer")->required();
  const auto bytes = [&](const char* name, std::string& target, const char* help, const char* type) {
    return partition.add_option(name, target, help)->type_name(type);
  };
  CLI::Option* memory = bytes("--memory", flags->memory, "memory of each peer; default no limit", "BYTES");
  CLI::Option* bandwidth =
      bytes("--bandwidth", flags->bandwidth, "network bandwidth of each peer, each way", "BYTES/S");
  CLI::Option* stream =
      bytes("--stream-bandwidth", flags->stream_bandwidth,
            "let parameters beyond the memory stream in at this rate; default they must fit", "BYTES/S");
  CLI::Option* peers = partition.add_option("--peers", flags->peers, "peers that differ, from a file (JSON)")
                           ->type_name("FILE");
  for (CLI::Option* option : {memory, bandwidth, stream}) peers->excludes(option);
  partition.add_option("--time-limit", flags->time_limit, "seconds to search")->default_str("8");
  partition.add_option("--seed", flags->seed, "of the random search")->default_str("1");
  CLI::Option* dot = partition.add_flag("--dot", flags->dot, "print the cut graph for Graphviz");
  partition.add_flag("--svg", flags->svg, "print a picture of the cut graph")->excludes(dot);
  set_body(partition, context, [flags, &context] { return run_partition(*flags, context); });
}

}  // namespace neuroshard::app
