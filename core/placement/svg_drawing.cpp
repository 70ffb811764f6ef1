// The SVG half of drawing.h.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/placement/drawing.h"

namespace neuroshard::placement {
namespace {

constexpr double box_width = 104, box_height = 24, gap_x = 14, gap_y = 22, margin = 24, header = 26;
constexpr std::size_t max_columns = 14;  // wider layers wrap
constexpr std::size_t label_characters = 16;

// Text for XML, cut to what fits; cuts between UTF-8 characters.
std::string escaped(const std::string& text, std::size_t most) {
  std::string result;
  std::size_t shown = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if ((c & 0xc0) != 0x80 && ++shown > most) return result + "…";
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '"') {
      result += "&quot;";
    } else {
      result += c < 0x20 ? ' ' : text[i];
    }
  }
  return result;
}

class Layout {
 public:
  Layout(const ComputationGraph& graph, const PartitionResult& result) : graph_(graph), result_(result) {
    block_of_.resize(graph.nodes.size());
    for (std::uint32_t b = 0; b < result.blocks.size(); ++b) {
      for (const NodeIndex v : result.blocks[b].nodes) block_of_[v] = b;
    }
    readers_.resize(graph.nodes.size());
    for (NodeIndex v = 0; v < graph.nodes.size(); ++v) {
      for (const std::uint32_t u : graph.nodes[v].inputs) readers_[u].push_back(v);
    }
  }
  std::string draw();

 private:
  void place_nodes();
  void order_rows(bool down);
  void set_columns();
  void place_blocks();
  void write_edges();
  void write_edge(double x1, double y1, double x2, double y2, bool cut, const std::string& title);
  void write_block(std::size_t b);
  void write_boxes();

  const ComputationGraph& graph_;
  const PartitionResult& result_;
  std::vector<std::uint32_t> block_of_;
  std::vector<std::vector<NodeIndex>> readers_;
  std::vector<std::vector<NodeIndex>> rows_;
  std::vector<std::uint32_t> row_block_;
  std::vector<double> x_, y_;         // centre of a node's box
  std::vector<double> top_, bottom_;  // of a block's band
  double width_ = 0, height_ = 0;
  std::string svg_;
};

void Layout::set_columns() {
  for (const auto& row : rows_) {
    const double total = static_cast<double>(row.size()) * (box_width + gap_x) - gap_x;
    for (std::size_t i = 0; i < row.size(); ++i) {
      x_[row[i]] = width_ / 2 - total / 2 + static_cast<double>(i) * (box_width + gap_x) + box_width / 2;
    }
  }
}

// Barycentre rule: nodes of a row by the mean column of their inputs (down) or readers (up).
void Layout::order_rows(bool down) {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    auto& row = rows_[down ? i : rows_.size() - 1 - i];
    std::map<NodeIndex, double> key;
    for (const NodeIndex v : row) {
      const auto& others = down ? graph_.nodes[v].inputs : readers_[v];
      double sum = 0;
      for (const std::uint32_t u : others) sum += x_[u];
      key[v] = others.empty() ? x_[v] : sum / static_cast<double>(others.size());
    }
    std::stable_sort(row.begin(), row.end(), [&](NodeIndex a, NodeIndex b) { return key[a] < key[b]; });
    set_columns();
  }
}

void Layout::place_nodes() {
  const std::size_t n = graph_.nodes.size();
  x_.assign(n, 0);
  y_.assign(n, 0);
  std::vector<std::uint32_t> depth(n);
  for (std::uint32_t b = 0; b < result_.blocks.size(); ++b) {
    std::map<std::uint32_t, std::vector<NodeIndex>> layers;
    for (const NodeIndex v : result_.blocks[b].nodes) {
      for (const std::uint32_t u : graph_.nodes[v].inputs) {
        if (block_of_[u] == b) depth[v] = std::max(depth[v], depth[u] + 1);
      }
      layers[depth[v]].push_back(v);
    }
    for (const auto& [layer, nodes] : layers) {
      for (std::size_t at = 0; at < nodes.size(); at += max_columns) {
        rows_.emplace_back(
            nodes.begin() + static_cast<std::ptrdiff_t>(at),
            nodes.begin() + static_cast<std::ptrdiff_t>(std::min(nodes.size(), at + max_columns)));
        row_block_.push_back(b);
      }
    }
  }
  std::size_t widest = 4;
  for (const auto& row : rows_) widest = std::max(widest, row.size());
  width_ = 4 * margin + static_cast<double>(widest) * (box_width + gap_x);
  set_columns();
  for (int sweep = 0; sweep < 4; ++sweep) order_rows(sweep % 2 == 0);
  double y = margin + header;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (i == 0 || row_block_[i] != row_block_[i - 1]) {
      if (i > 0) bottom_.push_back(y);
      y += i > 0 ? gap_y : 0;
      top_.push_back(y);
      y += header + gap_y / 2;
    }
    for (const NodeIndex v : rows_[i]) y_[v] = y + box_height / 2;
    y += box_height + gap_y;
  }
  bottom_.push_back(y);
  height_ = y + margin;
}

void Layout::place_blocks() {
  width_ = 560;
  double y = margin + header;
  for (std::size_t b = 0; b < result_.blocks.size(); ++b) {
    top_.push_back(y);
    bottom_.push_back(y + 2 * header);
    y += 3 * header;
  }
  height_ = y + margin;
}

void Layout::write_edge(double x1, double y1, double x2, double y2, bool cut, const std::string& title) {
  const double bend = std::max(12.0, (y2 - y1) / 2);
  svg_ += fmt::format(
      "<path d=\"M{:.1f} {:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}\" "
      "class=\"{}\"><title>{}</title></path>\n",
      x1, y1, x1, y1 + bend, x2, y2 - bend, x2, y2, cut ? "cut" : "edge", title);
}

void Layout::write_edges() {
  if (!x_.empty()) {
    for (const bool cut : {false, true}) {
      for (NodeIndex v = 0; v < graph_.nodes.size(); ++v) {
        for (const std::uint32_t u : graph_.nodes[v].inputs) {
          if ((block_of_[u] != block_of_[v]) != cut) continue;
          write_edge(x_[u], y_[u] + box_height / 2, x_[v], y_[v] - box_height / 2, cut,
                     escaped(graph_.nodes[u].id, 60) + " → " + escaped(graph_.nodes[v].id, 60));
        }
      }
    }
    return;
  }
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> between;
  for (NodeIndex v = 0; v < graph_.nodes.size(); ++v) {
    for (const std::uint32_t u : graph_.nodes[v].inputs) {
      if (block_of_[u] != block_of_[v]) ++between[{block_of_[u], block_of_[v]}];
    }
  }
  for (const auto& [ends, count] : between) {
    const double side = width_ - 2 * margin - 12.0 * static_cast<double>(ends.second - ends.first);
    write_edge(side, bottom_[ends.first], side, top_[ends.second], true, fmt::format("{} edges", count));
  }
}

void Layout::write_block(std::size_t b) {
  const BlockReport& block = result_.blocks[b];
  const bool slowest = block.cost >= result_.bottleneck * (1 - 1e-9);
  svg_ += fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"8\" class=\"{}\"/>\n", margin,
      top_[b], width_ - 2 * margin, bottom_[b] - top_[b], slowest ? "slowest" : "block");
  svg_ += fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"title\">Block {}: {:.4g} {} = work {:.4g} + in {:.4g} + out "
      "{:.4g}{}, "
      "{} nodes</text>\n",
      margin + 10, top_[b] + 18, b + 1, block.cost, escaped(graph_.unit, 8), block.work, block.in, block.out,
      block.overflow > 0 ? fmt::format(" + streaming {:.4g}", block.overflow) : "", block.nodes.size());
  // The load as a share of the bottleneck.
  const double share = result_.bottleneck > 0 ? block.cost / result_.bottleneck : 0;
  svg_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"3\" class=\"load\"/>\n",
                      margin + 10, top_[b] + 23, share * (width_ - 2 * margin - 20));
}

void Layout::write_boxes() {
  for (NodeIndex v = 0; v < x_.size(); ++v) {
    const GraphNode& node = graph_.nodes[v];
    svg_ += fmt::format(
        "<g><title>{} {} work {:.4g}</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" "
        "rx=\"4\" "
        "class=\"node\"/><text x=\"{:.1f}\" y=\"{:.1f}\" class=\"label\">{}</text></g>\n",
        escaped(node.id, 200), escaped(node.op, 200), node.work, x_[v] - box_width / 2,
        y_[v] - box_height / 2, box_width, box_height, x_[v], y_[v] + 4,
        escaped(node.op.empty() ? node.id : node.op, label_characters));
  }
}

std::string Layout::draw() {
  if (graph_.nodes.size() <= max_drawn_nodes) {
    place_nodes();
  } else {
    place_blocks();
  }
  svg_ = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\" "
      "font-family=\"sans-serif\">\n<style>.block{{fill:#eef2f7;stroke:#b8c4d2}}.slowest{{fill:#fdf0e6;"
      "stroke:#d98243}}"
      ".node{{fill:#fff;stroke:#5b6b7c}}.edge{{fill:none;stroke:#9aa7b5}}.cut{{fill:none;stroke:#c0392b;"
      "stroke-width:1.8}}"
      ".load{{fill:#5b8fd0}}.title{{font-size:13px;fill:#222}}.label{{font-size:11px;text-anchor:middle;fill:"
      "#222}}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      width_, height_);
  svg_ += fmt::format(
      "<text x=\"{}\" y=\"{}\" class=\"title\">Bottleneck {:.6g} {}, lower bound {:.6g}, gap {:.3g} "
      "%</text>\n",
      margin, margin + 8, result_.bottleneck, escaped(graph_.unit, 8), result_.lower_bound,
      100 * result_.gap());
  for (std::size_t b = 0; b < result_.blocks.size(); ++b) write_block(b);
  write_edges();
  write_boxes();
  return svg_ + "</svg>\n";
}

}  // namespace

std::string to_svg(const ComputationGraph& graph, const PartitionResult& result) {
  return Layout(graph, result).draw();
}

}  // namespace neuroshard::placement
