#include "core/partition/render/drawing.h"

#include <fmt/format.h>

#include <map>

namespace neuroshard::partition {
namespace {

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return result + '"';
}

std::vector<std::uint32_t> blocks_of(const ComputationGraph& graph, const PartitionResult& result) {
  std::vector<std::uint32_t> block_of(graph.nodes.size());
  for (std::uint32_t b = 0; b < result.blocks.size(); ++b) {
    for (const NodeIndex v : result.blocks[b].nodes) block_of[v] = b;
  }
  return block_of;
}

std::string block_label(const ComputationGraph& graph, const PartitionResult& result, std::size_t b) {
  const BlockReport& block = result.blocks[b];
  return fmt::format("block {}: {:.4g} {} ({} nodes)", b + 1, block.cost, graph.unit, block.nodes.size());
}

}  // namespace

std::string to_dot(const ComputationGraph& graph, const PartitionResult& result) {
  const std::vector<std::uint32_t> block_of = blocks_of(graph, result);
  std::string dot = fmt::format(
      "digraph partition {{\n  label={};\n  node [shape=box, style=filled, fillcolor=white, fontsize=10];\n",
      quoted(fmt::format("bottleneck {:.6g} {}, lower bound {:.6g}", result.bottleneck, graph.unit,
                         result.lower_bound)));
  const bool nodes = graph.nodes.size() <= max_drawn_nodes;
  for (std::size_t b = 0; b < result.blocks.size(); ++b) {
    const std::string label = quoted(block_label(graph, result, b));
    if (!nodes) {
      dot += fmt::format("  b{} [label={}];\n", b, label);
      continue;
    }
    dot += fmt::format("  subgraph cluster_{} {{\n    label={}; style=filled; fillcolor=\"#eef2f7\";\n", b,
                       label);
    for (const NodeIndex v : result.blocks[b].nodes) {
      const GraphNode& node = graph.nodes[v];
      dot += fmt::format("    n{} [label={}];\n", v,
                         quoted(node.op.empty() ? node.id : node.id + " " + node.op));
    }
    dot += "  }\n";
  }
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> between;
  for (NodeIndex v = 0; v < graph.nodes.size(); ++v) {
    for (const std::uint32_t u : graph.nodes[v].inputs) {
      const bool cut = block_of[u] != block_of[v];
      if (cut) ++between[{block_of[u], block_of[v]}];
      if (nodes) dot += fmt::format("  n{} -> n{}{};\n", u, v, cut ? " [color=\"#c0392b\", penwidth=2]" : "");
    }
  }
  if (!nodes) {
    for (const auto& [ends, count] : between) {
      dot += fmt::format("  b{} -> b{} [label=\"{}\"];\n", ends.first, ends.second, count);
    }
  }
  return dot + "}\n";
}

}  // namespace neuroshard::partition
