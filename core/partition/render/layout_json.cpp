#include "core/partition/render/layout_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/partition/render/drawing.h"
#include "core/partition/render/svg_layout.h"

namespace neuroshard::partition {
namespace {

constexpr double margin = 20, column_header = 46;

// One node per block, so that thousands of operations become a picture too.
ComputationGraph blocks_of(const ComputationGraph& graph, PartitionResult* result) {
  ComputationGraph contracted;
  std::vector<std::uint32_t> block_of(graph.nodes.size());
  for (std::uint32_t b = 0; b < result->blocks.size(); ++b) {
    GraphNode node;
    node.id = fmt::format("{} nodes", result->blocks[b].nodes.size());
    for (const NodeIndex v : result->blocks[b].nodes) {
      block_of[v] = b;
      node.work += graph.nodes[v].work;
      node.param_bytes += graph.nodes[v].param_bytes;
    }
    contracted.nodes.push_back(std::move(node));
  }
  for (NodeIndex v = 0; v < graph.nodes.size(); ++v) {
    for (const NodeIndex u : graph.nodes[v].inputs) {
      if (block_of[u] == block_of[v]) continue;
      contracted.nodes[block_of[v]].inputs.push_back(block_of[u]);
    }
  }
  for (GraphNode& node : contracted.nodes) {
    std::sort(node.inputs.begin(), node.inputs.end());
    node.inputs.erase(std::unique(node.inputs.begin(), node.inputs.end()), node.inputs.end());
  }
  for (std::uint32_t b = 0; b < result->blocks.size(); ++b) result->blocks[b].nodes = {b};
  return contracted;
}

}  // namespace

std::string layout_json(const ComputationGraph& original, const PartitionResult& original_result) {
  PartitionResult result = original_result;
  const bool contracted = original.nodes.size() > max_drawn_nodes;
  const ComputationGraph graph = contracted ? blocks_of(original, &result) : original;
  const SvgLayout layout = lay_out(graph, result, margin, margin, column_header);
  nlohmann::ordered_json columns = nlohmann::ordered_json::array(), nodes = columns, edges = columns;
  for (const SvgColumn& column : layout.columns)
    columns.push_back({{"left", column.left}, {"width", column.width}, {"bottom", column.bottom}});
  for (NodeIndex v = 0; v < graph.nodes.size(); ++v) {
    const GraphNode& node = graph.nodes[v];
    nodes.push_back({{"id", node.id},
                     {"op", node.op},
                     {"block", layout.block_of[v]},
                     {"row", layout.row[v]},
                     {"x", layout.x[v]},
                     {"y", layout.y[v]},
                     {"work", node.work},
                     {"param_bytes", node.param_bytes},
                     {"output_bytes", node.output_bytes}});
    for (const NodeIndex u : node.inputs) edges.push_back({u, v});
  }
  const nlohmann::ordered_json document{{"width", layout.right + margin},
                                        {"height", layout.bottom + margin},
                                        {"box", {svg_box_width, svg_box_height}},
                                        {"top", margin},
                                        {"contracted", contracted},
                                        {"columns", std::move(columns)},
                                        {"nodes", std::move(nodes)},
                                        {"edges", std::move(edges)}};
  // An id may hold any bytes.
  return document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace neuroshard::partition
