#include "core/partition/search/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/utf8.h"
#include "core/partition/search/slicing.h"

namespace neuroshard::partition {
namespace {

// Names in the message are those of foreign files.
Error invalid(const std::string& message) {
  return make_error(ErrorCode::InvalidArgument, one_line(message));
}

Expected<void> check_peers(const std::vector<Peer>& peers) {
  if (peers.empty()) return invalid("no peers: give at least one block (--k 1)");
  if (peers.size() > max_blocks) {
    return invalid(fmt::format("{} blocks exceed the limit of {}", peers.size(), max_blocks));
  }
  for (const Peer& peer : peers) {
    const auto wrong = [&](const char* what, double value) {
      return invalid(
          fmt::format("peer \"{}\": {} is {}; it must be a positive number", peer.name, what, value));
    };
    if (!(peer.speed > 0) || !(peer.speed <= max_quantity)) return wrong("speed", peer.speed);
    if (!(peer.memory > 0)) return wrong("memory", peer.memory);
    if (!(peer.bandwidth > 0)) return wrong("bandwidth", peer.bandwidth);
    if (!(peer.stream_bandwidth >= 0)) return wrong("stream bandwidth", peer.stream_bandwidth);
  }
  return {};
}

Device to_device(const ComputationGraph& graph, const Peer& peer, bool printed) {
  Device device;
  device.work_factor = 1 / peer.speed;
  device.io_factor = printed ? 1 : 1 / (peer.bandwidth * graph.unit_seconds);
  device.memory = peer.memory;
  if (peer.stream_bandwidth > 0) device.stream_factor = 1 / (peer.stream_bandwidth * graph.unit_seconds);
  return device;
}

TensorGraph to_tensors(const ComputationGraph& graph, bool printed) {
  TensorGraph result;
  std::vector<std::vector<NodeIndex>> readers(graph.nodes.size());
  for (NodeIndex v = 0; v < graph.nodes.size(); ++v) {
    for (const NodeIndex u : graph.nodes[v].inputs) readers[u].push_back(v);
  }
  for (NodeIndex v = 0; v < graph.nodes.size(); ++v) {
    const GraphNode& node = graph.nodes[v];
    result.work.push_back(node.work);
    result.params.push_back(node.param_bytes);
    // An output without readers leaves the pipeline at no cost, but is in memory while the node runs.
    result.scratch.push_back(readers[v].empty() ? node.output_bytes : 0);
    if (readers[v].empty()) continue;
    result.tensors.push_back({v, printed ? node.transfer : node.output_bytes, node.output_bytes, readers[v]});
  }
  index_tensors(&result);
  return result;
}

// Whether a single group already asks for more than the best peer has, or all of them for more than all
// peers.
Expected<void> check_memory(const ComputationGraph& graph, const Problem& problem,
                            const std::vector<Peer>& peers) {
  const Device best = best_of(problem.devices);
  if (best.memory == unlimited) return {};
  const TensorGraph& tensors = problem.graph;
  std::vector<double> params(problem.colocated.count);
  for (NodeIndex v = 0; v < tensors.size(); ++v) {
    double held = tensors.scratch[v];
    for (const auto* list : {&tensors.produced[v], &tensors.consumed[v]}) {
      for (const TensorIndex t : *list) held += tensors.tensors[t].bytes;
    }
    const double own = best.stream_factor == unlimited ? tensors.params[v] : 0;
    if (own + held > best.memory) {
      return invalid(
          fmt::format("node \"{}\" needs {:.0f} bytes ({:.0f} of parameters, {:.0f} of tensors it reads and "
                      "writes), more than the "
                      "{:.0f} bytes of the largest peer; give more memory{}",
                      graph.nodes[v].id, own + held, own, held, best.memory,
                      held <= best.memory ? " or allow streaming (--stream-bandwidth)" : ""));
    }
    params[problem.colocated.group_of[v]] += own;
    if (params[problem.colocated.group_of[v]] > best.memory) {
      return invalid(
          fmt::format("node \"{}\" and the nodes that must share its block have more parameters than the "
                      "{:.0f} bytes of the largest peer",
                      graph.nodes[v].id, best.memory));
    }
  }
  double room = 0;
  for (const Peer& peer : peers) room += peer.memory;
  if (best.stream_factor == unlimited && tensors.total_params() > room) {
    return invalid(
        fmt::format("the graph has {:.0f} bytes of parameters and the peers have room for {:.0f}; give more "
                    "peers, more memory, or allow streaming (--stream-bandwidth)",
                    tensors.total_params(), room));
  }
  return {};
}

}  // namespace

Expected<Problem> make_problem(const ComputationGraph& graph, const std::vector<Peer>& peers) {
  if (peers.size() > graph.nodes.size() && !graph.nodes.empty()) {
    return invalid(
        fmt::format("{} blocks for a graph of {} nodes: a block holds at least one node; give at most {}",
                    peers.size(), graph.nodes.size(), graph.nodes.size()));
  }
  return make_pipeline_problem(graph, peers);
}

Expected<Problem> make_pipeline_problem(const ComputationGraph& graph, const std::vector<Peer>& peers) {
  NS_RETURN_IF_ERROR(validate(graph));
  NS_RETURN_IF_ERROR(check_peers(peers));
  const auto has_bandwidth = [](const Peer& peer) { return peer.bandwidth != unlimited; };
  const bool any = std::any_of(peers.begin(), peers.end(), has_bandwidth);
  const bool all = std::all_of(peers.begin(), peers.end(), has_bandwidth);
  if (any && !all)
    return invalid("some peers have a bandwidth and some have none; give it for all or for none");
  const bool printed = !any && graph.printed_transfers;
  if (!any && !printed) {
    const auto sized = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                    [](const GraphNode& node) { return node.output_bytes > 0; });
    if (sized != graph.nodes.end() && peers.size() > 1) {
      return invalid(fmt::format(
          "node \"{}\" has an output of {:.0f} bytes, but its transfer time is unknown without a bandwidth; "
          "set --bandwidth BYTES/S",
          sized->id, sized->output_bytes));
    }
  }
  Problem problem;
  problem.graph = to_tensors(graph, printed);
  for (const Peer& peer : peers) problem.devices.push_back(to_device(graph, peer, printed));
  std::vector<std::pair<NodeIndex, NodeIndex>> together;
  for (const auto& set : graph.colocated) {
    for (const std::uint32_t v : set) together.emplace_back(set.front(), v);
  }
  problem.colocated = close_groups(problem.graph, together);
  NS_RETURN_IF_ERROR(check_memory(graph, problem, peers));
  double everything = problem.graph.total_params();
  for (const Tensor& tensor : problem.graph.tensors) everything += tensor.bytes;
  everything += std::accumulate(problem.graph.scratch.begin(), problem.graph.scratch.end(), 0.0);
  for (const Device& device : problem.devices) problem.memory_binds |= everything > device.memory;
  return problem;
}

std::vector<BlockReport> report_blocks(const Problem& problem, const std::vector<std::uint32_t>& block_of,
                                       const std::vector<std::uint32_t>& device_of_block,
                                       const std::vector<NodeIndex>& order) {
  std::vector<BlockReport> blocks(device_of_block.size());
  for (std::size_t b = 0; b < blocks.size(); ++b) blocks[b].device = device_of_block[b];
  for (const NodeIndex v : order) blocks[block_of[v]].nodes.push_back(v);
  blocks.erase(
      std::remove_if(blocks.begin(), blocks.end(), [](const BlockReport& b) { return b.nodes.empty(); }),
      blocks.end());
  std::vector<NodeIndex> by_block;
  for (const BlockReport& block : blocks)
    by_block.insert(by_block.end(), block.nodes.begin(), block.nodes.end());
  // Transfers are added up anew: the sweep's running sums would leave a rounding error where nothing is sent.
  std::vector<std::uint32_t> final_block(problem.graph.size());
  for (std::uint32_t b = 0; b < blocks.size(); ++b) {
    for (const NodeIndex v : blocks[b].nodes) final_block[v] = b;
  }
  std::vector<double> in(blocks.size()), out(blocks.size());
  for (const Tensor& tensor : problem.graph.tensors) {
    const std::uint32_t home = final_block[tensor.producer];
    std::vector<std::uint32_t> readers;
    for (const NodeIndex c : tensor.consumers) {
      if (final_block[c] != home) readers.push_back(final_block[c]);
    }
    std::sort(readers.begin(), readers.end());
    readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
    if (!readers.empty()) out[home] += tensor.cost;
    for (const std::uint32_t b : readers) in[b] += tensor.cost;
  }
  SegmentSweep sweep(problem.graph);
  sweep.set_order(by_block);
  std::size_t at = 0;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    BlockReport& block = blocks[b];
    sweep.start(at);
    SegmentCost cost;
    for (std::size_t i = 0; i < block.nodes.size(); ++i) cost = sweep.grow();
    at += block.nodes.size();
    cost.in = in[b];
    cost.out = out[b];
    const Device& device = problem.devices[block.device];
    block.work = cost.work * device.work_factor;
    block.in = cost.in * device.io_factor;
    block.out = cost.out * device.io_factor;
    block.params = cost.params;
    block.peak = cost.peak;
    block.cost = device.block_cost(cost.work, cost.in + cost.out, cost.params, cost.peak);
    const double plain = device.block_cost(cost.work, cost.in + cost.out, 0, 0);
    block.overflow = block.cost > plain ? block.cost - plain : 0;
  }
  return blocks;
}

}  // namespace neuroshard::partition
