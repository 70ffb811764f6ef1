// The SVG half of drawing.h: a caption, a legend with the load of each block, and the cut graph.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "core/partition/render/drawing.h"
#include "core/partition/render/svg_layout.h"

namespace neuroshard::partition {
namespace {

constexpr double margin = 20, caption_height = 50, legend_row = 22, legend_text = 178, legend_bar = 320;
constexpr double legend_width = 820, column_header = 46;
constexpr std::size_t label_characters = 15;
constexpr std::size_t most_legend_rows = 64;

// Fill and stroke of a block; neighbours differ, and twelve different hues come before one repeats.
struct Colours {
  const char *fill, *box, *line;
};
constexpr std::array<Colours, 12> palette{{{"#eef4fb", "#cfe2f6", "#3a76b5"},
                                           {"#fdf5e8", "#fbe3bb", "#b97a10"},
                                           {"#eef8f0", "#cdebd3", "#2f8a49"},
                                           {"#f7f0fa", "#e6d3f0", "#8048a3"},
                                           {"#eaf7f8", "#c3e8eb", "#1d818a"},
                                           {"#fdf0f3", "#f8d3dd", "#b8456a"},
                                           {"#f4f6e6", "#e2e9bd", "#73831b"},
                                           {"#f0f0fb", "#d6d6f4", "#5353b3"},
                                           {"#faf2ec", "#efd9c8", "#96623a"},
                                           {"#ecf8f4", "#c6ecdf", "#23866a"},
                                           {"#f9eff8", "#f0cfec", "#a33d99"},
                                           {"#f1f4f6", "#d7e0e6", "#526a7a"}}};
const Colours& colours_of(std::size_t block) {
  return palette[block % palette.size()];
}

// Text for XML, cut to what fits; cuts between UTF-8 characters.
std::string escaped(const std::string& text, std::size_t most) {
  std::string result;
  std::size_t shown = 0;
  for (const char letter : text) {
    const auto c = static_cast<unsigned char>(letter);
    if ((c & 0xc0) != 0x80 && ++shown > most) return result + "…";
    switch (letter) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      default: result += c < 0x20 ? ' ' : letter;
    }
  }
  return result;
}

// "1.5 GB".
std::string size_text(double bytes) {
  constexpr std::array<const char*, 5> units{"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  for (; bytes >= 1000 && unit + 1 < units.size(); ++unit) bytes /= 1000;
  return fmt::format("{:.3g} {}", bytes, units[unit]);
}

class Picture {
 public:
  Picture(const ComputationGraph& graph, const PartitionResult& result) : graph_(graph), result_(result) {}
  std::string draw();

 private:
  bool slowest(const BlockReport& block) const { return block.cost >= result_.bottleneck * (1 - 1e-9); }
  std::string unit() const { return escaped(graph_.unit, 8); }
  void write_caption();
  double write_legend(double top);
  void write_legend_row(std::size_t b, double y);
  void write_arcs(double top);
  void write_columns(const SvgLayout& layout, double top);
  void write_inner_edges(const SvgLayout& layout);
  void write_transfers(const SvgLayout& layout);
  void write_transfer(const SvgLayout& layout, NodeIndex from, std::uint32_t to,
                      const std::vector<NodeIndex>& readers);
  void write_boxes(const SvgLayout& layout);
  void text(double x, double y, const char* style, const std::string& content) {
    svg_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>\n", x, y, style, content);
  }

  const ComputationGraph& graph_;
  const PartitionResult& result_;
  std::string svg_;
};

void Picture::write_caption() {
  const std::string gap =
      result_.proved() ? "proved optimal" : fmt::format("gap {:.2f} %", 100 * result_.gap());
  text(margin, margin + 12, "caption",
       fmt::format("{} block{}: the slowest takes {:.5g} {} — {}", result_.blocks.size(),
                   result_.blocks.size() == 1 ? "" : "s", result_.bottleneck, unit(), gap));
  text(margin, margin + 30, "small",
       fmt::format("{} nodes, {} edges; no partition is faster than {:.5g} {} ({})", graph_.nodes.size(),
                   graph_.edge_count(), result_.lower_bound, unit(), escaped(result_.certificate, 60)));
}

// Colour, name, load split into its parts on one scale, and what the block holds.
void Picture::write_legend_row(std::size_t b, double y) {
  const BlockReport& block = result_.blocks[b];
  const Colours& colours = colours_of(b);
  svg_ += fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" height=\"14\" rx=\"3\" fill=\"{}\" stroke=\"{}\"/>\n",
      margin, y, colours.box, colours.line);
  text(margin + 22, y + 12, slowest(block) ? "strong" : "plain",
       fmt::format("Block {}: {:.4g} {}", b + 1, block.cost, unit()));
  double x = margin + legend_text;
  const std::array<std::pair<double, const char*>, 4> parts{{{block.in, "#7d93a8"},
                                                             {block.work, colours.line},
                                                             {block.out, "#445a70"},
                                                             {block.overflow, "#c2452d"}}};
  for (const auto& [time, fill] : parts) {
    const double width = result_.bottleneck > 0 ? legend_bar * std::min(1.0, time / result_.bottleneck) : 0;
    if (width < 0.05) continue;
    svg_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"12\" fill=\"{}\"/>\n", x,
                        y + 1, width, fill);
    x += width;
  }
  if (slowest(block)) {
    svg_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"16\" class=\"mark\"/>\n",
                        margin + legend_text - 2, y - 1, legend_bar + 4);
  }
  std::string detail = fmt::format("{} node{}, {}", block.nodes.size(), block.nodes.size() == 1 ? "" : "s",
                                   size_text(block.params));
  if (slowest(block)) detail = "bottleneck · " + detail;
  text(margin + legend_text + legend_bar + 12, y + 12, "small", detail);
}

// Its height.
double Picture::write_legend(double top) {
  const std::size_t rows = std::min(result_.blocks.size(), most_legend_rows);
  for (std::size_t b = 0; b < rows; ++b) write_legend_row(b, top + static_cast<double>(b) * legend_row);
  double y = top + static_cast<double>(rows) * legend_row;
  if (rows < result_.blocks.size()) {
    text(margin + 22, y + 12, "small", fmt::format("and {} more blocks", result_.blocks.size() - rows));
    y += legend_row;
  }
  double x = margin + legend_text;
  for (const auto& [name, fill] : {std::pair{"receive", "#7d93a8"},
                                   {"work (colour of the block)", "#b9c4cf"},
                                   {"send", "#445a70"},
                                   {"stream parameters in", "#c2452d"}}) {
    svg_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"10\" height=\"10\" fill=\"{}\"/>\n", x,
                        y + 3, fill);
    text(x + 15, y + 12, "small", name);
    x += 30 + 6.2 * static_cast<double>(std::string_view(name).size());
  }
  return y + legend_row + 8 - top;
}

// Too many nodes for boxes: what passes between the blocks, beside the legend.
void Picture::write_arcs(double top) {
  std::vector<std::uint32_t> block_of(graph_.nodes.size());
  for (std::uint32_t b = 0; b < result_.blocks.size(); ++b) {
    for (const NodeIndex v : result_.blocks[b].nodes) block_of[v] = b;
  }
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> between;
  for (NodeIndex v = 0; v < graph_.nodes.size(); ++v) {
    for (const std::uint32_t u : graph_.nodes[v].inputs) {
      if (block_of[u] != block_of[v]) ++between[{block_of[u], block_of[v]}];
    }
  }
  for (const auto& [ends, count] : between) {
    if (ends.second >= most_legend_rows) continue;
    const double x = margin + legend_width - 160;
    const double y1 = top + ends.first * legend_row + 7, y2 = top + ends.second * legend_row + 7;
    const double reach = x + 16 + 12.0 * std::min<double>(10, ends.second - ends.first);
    svg_ += fmt::format(
        "<path d=\"M{0:.1f} {1:.1f}C{2:.1f} {1:.1f} {2:.1f} {3:.1f} {0:.1f} {3:.1f}\" class=\"cut\" "
        "stroke=\"{4}\"><title>{5} edges from block {6} to block {7}</title></path>\n",
        x, y1, reach, y2, colours_of(ends.first).line, count, ends.first + 1, ends.second + 1);
  }
}

void Picture::write_columns(const SvgLayout& layout, double top) {
  for (std::size_t b = 0; b < layout.columns.size(); ++b) {
    const SvgColumn& column = layout.columns[b];
    const BlockReport& block = result_.blocks[b];
    const Colours& colours = colours_of(b);
    svg_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"8\" fill=\"{}\" "
        "stroke=\"{}\" "
        "stroke-width=\"{}\"/>\n",
        column.left, top, column.width, column.bottom - top, colours.fill,
        slowest(block) ? "#c2452d" : colours.line, slowest(block) ? 3 : 1);
    text(column.left + 12, top + 18, "strong", fmt::format("Block {}", b + 1));
    text(column.left + 12, top + 34, "small",
         fmt::format("{:.4g} {}{}", block.cost, unit(), slowest(block) ? " · slowest" : ""));
  }
}

// Edges inside a block go down; longer ones swing out to the side of what stands between.
void Picture::write_inner_edges(const SvgLayout& layout) {
  for (NodeIndex v = 0; v < graph_.nodes.size(); ++v) {
    for (const std::uint32_t u : graph_.nodes[v].inputs) {
      if (layout.block_of[u] != layout.block_of[v]) continue;
      const double x1 = layout.x[u], y1 = layout.y[u] + svg_box_height / 2;
      const double x2 = layout.x[v], y2 = layout.y[v] - svg_box_height / 2;
      const bool far = layout.row[v] > layout.row[u] + 1 && std::abs(x1 - x2) < svg_box_width;
      const double swing = far ? svg_box_width * 0.82 : 0;
      const double bend = std::max(8.0, (y2 - y1) / 2);
      svg_ += fmt::format(
          "<path d=\"M{:.1f} {:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}\" class=\"edge\"/>\n", x1, y1,
          x1 + swing, y1 + bend, x2 + swing, y2 - bend, x2, y2);
    }
  }
}

// One tensor to one block, as it is charged: a line into the block, and thin ones to its readers there.
void Picture::write_transfer(const SvgLayout& layout, NodeIndex from, std::uint32_t to,
                             const std::vector<NodeIndex>& readers) {
  double y = 0;
  for (const NodeIndex v : readers) y += layout.y[v];
  y /= static_cast<double>(readers.size());
  // Level to the edge of its column first: a slanted line would cross what stands below.
  const SvgColumn& home = layout.columns[layout.block_of[from]];
  const double x1 = layout.x[from] + svg_box_width / 2, y1 = layout.y[from], edge = home.left + home.width;
  const double port = layout.columns[to].left;
  const double bend = (port - edge) / 2;
  const char* line = colours_of(layout.block_of[from]).line;
  svg_ += fmt::format(
      "<path d=\"M{:.1f} {:.1f}H{:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}\" class=\"cut\" "
      "stroke=\"{}\"><title>{} to "
      "block {}, {}</title></path>\n<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n",
      x1, y1, edge, edge + bend, y1, port - bend, y, port, y, line, escaped(graph_.nodes[from].id, 60),
      to + 1, size_text(graph_.nodes[from].output_bytes), port, y, line);
  for (const NodeIndex v : readers) {
    const double end = layout.x[v] - svg_box_width / 2;
    svg_ += fmt::format(
        "<path d=\"M{0:.1f} {1:.1f}C{2:.1f} {1:.1f} {0:.1f} {3:.1f} {2:.1f} {3:.1f}\" class=\"fan\" "
        "stroke=\"{4}\"/>\n",
        port, y, end, layout.y[v], line);
  }
}

void Picture::write_transfers(const SvgLayout& layout) {
  std::map<std::pair<NodeIndex, std::uint32_t>, std::vector<NodeIndex>> transfers;
  for (NodeIndex v = 0; v < graph_.nodes.size(); ++v) {
    for (const std::uint32_t u : graph_.nodes[v].inputs) {
      if (layout.block_of[u] != layout.block_of[v]) transfers[{u, layout.block_of[v]}].push_back(v);
    }
  }
  for (const auto& [transfer, readers] : transfers)
    write_transfer(layout, transfer.first, transfer.second, readers);
}

void Picture::write_boxes(const SvgLayout& layout) {
  for (NodeIndex v = 0; v < graph_.nodes.size(); ++v) {
    const GraphNode& node = graph_.nodes[v];
    const Colours& colours = colours_of(layout.block_of[v]);
    svg_ += fmt::format(
        "<g class=\"node\"><title>{}{}{}: work {:.4g} {}, parameters {}, output {}</title><rect x=\"{:.1f}\" "
        "y=\"{:.1f}\" "
        "width=\"{}\" "
        "height=\"{}\" rx=\"4\" fill=\"{}\" stroke=\"{}\"/><text x=\"{:.1f}\" y=\"{:.1f}\" "
        "class=\"label\">{}</text></g>\n",
        escaped(node.id, 200), node.op.empty() ? "" : " ", escaped(node.op, 200), node.work, unit(),
        size_text(node.param_bytes), size_text(node.output_bytes), layout.x[v] - svg_box_width / 2,
        layout.y[v] - svg_box_height / 2, svg_box_width, svg_box_height, colours.box, colours.line,
        layout.x[v], layout.y[v] + 3.5, escaped(node.op.empty() ? node.id : node.op, label_characters));
  }
}

std::string Picture::draw() {
  const bool boxes = graph_.nodes.size() <= max_drawn_nodes;
  write_caption();
  const double legend_top = margin + caption_height;
  const double top = legend_top + write_legend(legend_top);
  double width = legend_width, height = top;
  if (boxes) {
    const SvgLayout layout = lay_out(graph_, result_, margin, top, column_header);
    write_columns(layout, top);
    write_inner_edges(layout);
    write_transfers(layout);
    write_boxes(layout);
    width = std::max(width, layout.right + margin);
    height = layout.bottom + margin;
  } else {
    write_arcs(legend_top);
  }
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 "
             "{0:.0f} "
             "{1:.0f}\" "
             "font-family=\"sans-serif\">\n<style>.caption{{font-size:17px;font-weight:bold;fill:#1d2733}}"
             ".plain{{font-size:13px;fill:#1d2733}}.strong{{font-size:13px;font-weight:bold;fill:#1d2733}}"
             ".small{{font-size:11.5px;fill:#4d5b69}}.label{{font-size:10.5px;text-anchor:middle;fill:#"
             "1d2733}}"
             ".edge{{fill:none;stroke:#8796a5}}.cut{{fill:none;stroke-width:2;opacity:.75}}"
             ".fan{{fill:none;stroke-width:.8;opacity:.55}}.mark{{fill:none;stroke:#c2452d;stroke-width:1.5}}"
             "</style>\n"
             "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
             width, height) +
         svg_ + "</svg>\n";
}

}  // namespace

std::string to_svg(const ComputationGraph& graph, const PartitionResult& result) {
  return Picture(graph, result).draw();
}

}  // namespace neuroshard::partition
