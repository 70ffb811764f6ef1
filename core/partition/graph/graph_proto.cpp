#include "core/partition/graph/graph_proto.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/utf8.h"
#include "core/partition/graph/wire_format.h"

namespace neuroshard::partition {
namespace {

// Field numbers of proto/graph.proto.
namespace graph_field {
enum : std::uint32_t { format = 1, unit, nodes, colocated, printed_transfers, convention };
}
namespace node_field {
enum : std::uint32_t { id = 1, op, work, param_bytes, output_bytes, transfer, inputs };
}
constexpr std::uint32_t set_nodes = 1;

constexpr std::string_view format_name = "neuroshard graph ";
constexpr std::string_view format_version = "1";
constexpr std::size_t max_convention = 4096;

Error corrupt(const std::string& where) {
  return make_error(ErrorCode::Corrupt,
                    fmt::format("{} is damaged or truncated: it does not match proto/graph.proto", where));
}

Error invalid(std::string message) {
  return make_error(ErrorCode::InvalidArgument, std::move(message));
}

// A number beyond 32 bits is no position; ~0 is refused later as "not there".
std::uint32_t position(std::uint64_t value) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, ~std::uint32_t{0}));
}

Expected<void> read_node(ByteSpan bytes, GraphNode* node, std::size_t* edges) {
  WireReader field(bytes);
  while (field.next()) {
    switch (field.field()) {
      case node_field::id: node->id = field.text(); break;
      case node_field::op: node->op = field.text(); break;
      case node_field::work: node->work = field.real(); break;
      case node_field::param_bytes: node->param_bytes = field.real(); break;
      case node_field::output_bytes: node->output_bytes = field.real(); break;
      case node_field::transfer: node->transfer = field.real(); break;
      case node_field::inputs: {
        // A varint takes at least a byte, so this much memory the file does have.
        const bool whole = for_each_varint(field, [&](std::uint64_t v) {
          if (++*edges <= max_edges) node->inputs.push_back(position(v));
        });
        if (!whole) return corrupt("a node of the graph file");
        if (*edges > max_edges) return invalid(fmt::format("the graph has more than {} edges", max_edges));
        break;
      }
      default: break;
    }
  }
  if (field.damaged() || !is_utf8(node->id) || !is_utf8(node->op)) return corrupt("a node of the graph file");
  if (node->op.size() > max_id_length) {
    return invalid(fmt::format("a node's op has {} bytes; the most is {}", node->op.size(), max_id_length));
  }
  std::sort(node->inputs.begin(), node->inputs.end());
  node->inputs.erase(std::unique(node->inputs.begin(), node->inputs.end()), node->inputs.end());
  return {};
}

Expected<std::vector<std::uint32_t>> read_set(ByteSpan bytes) {
  std::vector<std::uint32_t> members;
  WireReader field(bytes);
  while (field.next()) {
    if (field.field() != set_nodes) continue;
    if (!for_each_varint(field, [&](std::uint64_t v) { members.push_back(position(v)); }))
      return corrupt("a co-located set of the graph file");
  }
  if (field.damaged()) return corrupt("a co-located set of the graph file");
  return members;
}

Expected<void> read_field(const WireReader& field, ComputationGraph* graph, std::size_t* edges) {
  switch (field.field()) {
    case graph_field::unit: graph->unit = field.text().substr(0, max_id_length); break;
    case graph_field::nodes: {
      if (field.type() != WireType::Bytes) return corrupt("the graph file");
      if (graph->nodes.size() == max_nodes)
        return invalid(fmt::format("the graph has more than {} nodes", max_nodes));
      graph->nodes.emplace_back();
      return read_node(field.bytes(), &graph->nodes.back(), edges);
    }
    case graph_field::colocated: {
      NS_ASSIGN_OR_RETURN(std::vector<std::uint32_t> members, read_set(field.bytes()));
      if (!members.empty()) graph->colocated.push_back(std::move(members));
      break;
    }
    case graph_field::printed_transfers: graph->printed_transfers = field.number() != 0; break;
    case graph_field::convention:
      if (field.text().size() > max_convention || !is_utf8(field.text())) return corrupt("the graph file");
      graph->convention = field.text();
      break;
    default: break;
  }
  return {};
}

}  // namespace

bool is_graph_proto(ByteSpan head) {
  // The tag of field 1 and a one-byte length stand before the text.
  return head.size() >= 2 + format_name.size() && head[0] == 0x0a &&
         as_text(head.subspan(2)).substr(0, format_name.size()) == format_name;
}

Expected<ComputationGraph> parse_graph_proto(ByteSpan bytes) {
  if (bytes.size() > max_graph_file_bytes) {
    return make_error(ErrorCode::Exhausted, fmt::format("the graph file has {} bytes; the most is {}",
                                                        bytes.size(), max_graph_file_bytes));
  }
  if (!is_graph_proto(bytes)) return corrupt("the graph file");
  ComputationGraph graph;
  graph.unit.clear();
  std::size_t edges = 0;
  WireReader field(bytes);
  while (field.next()) {
    if (field.field() == graph_field::format && field.text() != std::string(format_name) + "1") {
      return make_error(ErrorCode::Unsupported,
                        fmt::format("the graph file has the format \"{}\"; this program reads \"{}{}\"",
                                    one_line(field.text(), 40), format_name, format_version));
    }
    NS_RETURN_IF_ERROR(read_field(field, &graph, &edges));
  }
  if (field.damaged()) return corrupt("the graph file");
  NS_RETURN_IF_ERROR(set_unit(&graph, graph.unit));
  if (graph.convention.empty()) graph.convention = "protobuf form: work in " + graph.unit;
  NS_RETURN_IF_ERROR(validate(graph));
  return graph;
}

Bytes format_graph_proto(const ComputationGraph& graph) {
  WireWriter file;
  file.text(graph_field::format, std::string(format_name) + std::string(format_version));
  file.text(graph_field::unit, graph.unit);
  for (const GraphNode& node : graph.nodes) {
    WireWriter message, inputs;
    message.text(node_field::id, node.id);
    message.text(node_field::op, node.op);
    message.real(node_field::work, node.work);
    message.real(node_field::param_bytes, node.param_bytes);
    message.real(node_field::output_bytes, node.output_bytes);
    message.real(node_field::transfer, node.transfer);
    for (const std::uint32_t u : node.inputs) inputs.raw_varint(u);
    if (!node.inputs.empty()) message.bytes(node_field::inputs, inputs.result());
    file.bytes(graph_field::nodes, message.result());
  }
  for (const auto& set : graph.colocated) {
    WireWriter message, members;
    for (const std::uint32_t v : set) members.raw_varint(v);
    message.bytes(set_nodes, members.result());
    file.bytes(graph_field::colocated, message.result());
  }
  file.varint(graph_field::printed_transfers, graph.printed_transfers ? 1 : 0);
  file.text(graph_field::convention, graph.convention);
  return file.take();
}

}  // namespace neuroshard::partition
