#include "core/partition/render/svg_layout.h"

#include <algorithm>
#include <map>

namespace neuroshard::partition {
namespace {

constexpr double gap_x = 10, gap_y = 16, padding = 14, column_gap = 56;
constexpr std::size_t most_in_row = 8;  // wider layers wrap
constexpr int sweeps = 4;

using Rows = std::vector<std::vector<NodeIndex>>;

class Columns {
 public:
  Columns(const ComputationGraph& graph, const PartitionResult& result) : graph_(graph), result_(result) {
    layout_.block_of.resize(graph.nodes.size());
    for (std::uint32_t b = 0; b < result.blocks.size(); ++b) {
      for (const NodeIndex v : result.blocks[b].nodes) layout_.block_of[v] = b;
    }
    readers_.resize(graph.nodes.size());
    for (NodeIndex v = 0; v < graph.nodes.size(); ++v) {
      for (const std::uint32_t u : graph.nodes[v].inputs) readers_[u].push_back(v);
    }
  }

  SvgLayout run(double left, double top, double header) {
    layout_.x.assign(graph_.nodes.size(), 0);
    layout_.y.assign(graph_.nodes.size(), 0);
    layout_.row.assign(graph_.nodes.size(), 0);
    for (std::uint32_t b = 0; b < result_.blocks.size(); ++b) {
      Rows rows = rows_of(b);
      std::size_t widest = 1;
      for (const auto& row : rows) widest = std::max(widest, row.size());
      SvgColumn column;
      column.left = left;
      column.width = static_cast<double>(widest) * (svg_box_width + gap_x) - gap_x + 2 * padding;
      place(column, rows);
      for (int sweep = 0; sweep < sweeps; ++sweep) order(b, column, &rows, sweep % 2 == 0);
      double y = top + header;
      for (std::uint32_t i = 0; i < rows.size(); ++i, y += svg_box_height + gap_y) {
        for (const NodeIndex v : rows[i]) {
          layout_.y[v] = y + svg_box_height / 2;
          layout_.row[v] = i;
        }
      }
      column.bottom = y;
      layout_.columns.push_back(column);
      layout_.bottom = std::max(layout_.bottom, y);
      layout_.right = left + column.width;
      left += column.width + column_gap;
    }
    return std::move(layout_);
  }

 private:
  Rows rows_of(std::uint32_t block) {
    std::map<std::uint32_t, std::vector<NodeIndex>> layers;
    std::map<NodeIndex, std::uint32_t> depth;
    for (const NodeIndex v : result_.blocks[block].nodes) {
      for (const std::uint32_t u : graph_.nodes[v].inputs) {
        if (layout_.block_of[u] == block) depth[v] = std::max(depth[v], depth[u] + 1);
      }
      layers[depth[v]].push_back(v);
    }
    Rows rows;
    for (const auto& [layer, nodes] : layers) {
      for (std::size_t at = 0; at < nodes.size(); at += most_in_row) {
        const auto first = nodes.begin() + static_cast<std::ptrdiff_t>(at);
        rows.emplace_back(first,
                          first + static_cast<std::ptrdiff_t>(std::min(most_in_row, nodes.size() - at)));
      }
    }
    return rows;
  }

  void place(const SvgColumn& column, const Rows& rows) {
    for (const auto& row : rows) {
      const double total = static_cast<double>(row.size()) * (svg_box_width + gap_x) - gap_x;
      double x = column.left + column.width / 2 - total / 2 + svg_box_width / 2;
      for (const NodeIndex v : row) {
        layout_.x[v] = x;
        x += svg_box_width + gap_x;
      }
    }
  }

  // Barycentre rule: the nodes of a row by the mean place of their inputs (down) or readers (up).
  void order(std::uint32_t block, const SvgColumn& column, Rows* rows, bool down) {
    for (std::size_t i = 0; i < rows->size(); ++i) {
      auto& row = (*rows)[down ? i : rows->size() - 1 - i];
      std::map<NodeIndex, double> key;
      for (const NodeIndex v : row) {
        double sum = 0, count = 0;
        for (const std::uint32_t u : down ? graph_.nodes[v].inputs : readers_[v]) {
          if (layout_.block_of[u] != block) continue;
          sum += layout_.x[u];
          ++count;
        }
        key[v] = count > 0 ? sum / count : layout_.x[v];
      }
      std::stable_sort(row.begin(), row.end(), [&](NodeIndex a, NodeIndex b) { return key[a] < key[b]; });
      place(column, {row});
    }
  }

  const ComputationGraph& graph_;
  const PartitionResult& result_;
  std::vector<std::vector<NodeIndex>> readers_;
  SvgLayout layout_;
};

}  // namespace

SvgLayout lay_out(const ComputationGraph& graph, const PartitionResult& result, double left, double top,
                  double header) {
  return Columns(graph, result).run(left, top, header);
}

}  // namespace neuroshard::partition
