#include "core/partition/graph/graph_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "core/base/utf8.h"

namespace neuroshard::partition {
namespace {

using nlohmann::json;

constexpr int max_depth = 8;
constexpr std::size_t max_convention = 4096;

// Names in the message are those of a foreign file.
Error invalid(const std::string& message) {
  return make_error(ErrorCode::InvalidArgument, one_line(message));
}

Expected<json> parse(ByteSpan bytes, const char* what) {
  if (bytes.size() > max_graph_file_bytes) {
    return make_error(ErrorCode::Exhausted, fmt::format("the {} has {} bytes; the most is {}", what,
                                                        bytes.size(), max_graph_file_bytes));
  }
  bool too_deep = false;
  const auto watch = [&](int depth, json::parse_event_t, json&) {
    too_deep = too_deep || depth > max_depth;
    return !too_deep;
  };
  // nlohmann/json reports by exceptions; they end here.
  try {
    json document = json::parse(bytes.begin(), bytes.end(), watch);
    if (too_deep) return invalid(fmt::format("the {} nests deeper than {} levels", what, max_depth));
    return document;
  } catch (const json::exception& e) {
    return invalid(fmt::format("the {} is not valid JSON: {}", what, e.what()));
  }
}

// Reads members of one object; `where` opens every message.
class Fields {
 public:
  Fields(const json& object, std::string where) : object_(object), where_(std::move(where)) {}

  Expected<double> number(const char* name, std::optional<double> otherwise) const {
    const auto at = object_.find(name);
    if (at == object_.end()) {
      if (otherwise) return *otherwise;
      return invalid(fmt::format("{} has no \"{}\"", where_, name));
    }
    if (!at->is_number()) return invalid(fmt::format("{}: \"{}\" is not a number", where_, name));
    const double value = at->get<double>();
    if (!std::isfinite(value) || value < 0 || value > max_quantity) {
      return invalid(
          fmt::format("{}: \"{}\" is {}; it must be between 0 and {:g}", where_, name, value, max_quantity));
    }
    return value;
  }
  Expected<bool> flag(const char* name) const {
    const auto at = object_.find(name);
    if (at == object_.end()) return false;
    if (!at->is_boolean()) return invalid(fmt::format("{}: \"{}\" is neither true nor false", where_, name));
    return at->get<bool>();
  }
  Expected<std::string> text(const char* name, std::size_t most = max_id_length) const {
    const auto at = object_.find(name);
    if (at == object_.end()) return std::string();
    if (!at->is_string()) return invalid(fmt::format("{}: \"{}\" is not text", where_, name));
    return valid_utf8(at->get<std::string>(), most);
  }
  Expected<void> only(std::initializer_list<std::string_view> known) const {
    for (const auto& [name, value] : object_.items()) {
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        return invalid(fmt::format("{} has an unknown field \"{}\"", where_, clipped(name)));
      }
    }
    return {};
  }
  static std::string clipped(const std::string& text) { return valid_utf8(text, max_id_length); }

 private:
  const json& object_;
  std::string where_;
};

// Text or an integer, as text.
Expected<std::string> to_id(const json& value, const std::string& where) {
  if (value.is_number_integer()) return value.dump();
  if (!value.is_string()) return invalid(where + " is neither text nor an integer");
  auto id = value.get<std::string>();
  if (id.empty()) return invalid(where + " is empty");
  if (id.size() > max_id_length)
    return invalid(fmt::format("{} is longer than {} bytes", where, max_id_length));
  return id;
}

Expected<const json*> list(const json& document, const char* name, std::size_t most) {
  const auto at = document.find(name);
  if (at == document.end() || !at->is_array())
    return invalid(fmt::format("the graph has no list \"{}\"", name));
  if (at->size() > most) {
    return invalid(fmt::format("the graph has {} {}; the most is {}", at->size(), name, most));
  }
  return &*at;
}

class Ids {
 public:
  // The position of a new node, in the order of the calls.
  Expected<void> add(const std::string& id) {
    if (!positions_.try_emplace(id, static_cast<std::uint32_t>(positions_.size())).second) {
      return invalid(fmt::format("two nodes have the id \"{}\"", id));
    }
    return {};
  }
  Expected<std::uint32_t> find(const json& value, const std::string& where) const {
    NS_ASSIGN_OR_RETURN(const std::string id, to_id(value, where));
    const auto at = positions_.find(id);
    if (at == positions_.end())
      return invalid(fmt::format("{} names node \"{}\", which does not exist", where, id));
    return at->second;
  }

 private:
  std::unordered_map<std::string, std::uint32_t> positions_;
};

Expected<void> add_nodes(const json& nodes, ComputationGraph* graph, Ids* ids) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::string place = fmt::format("the node at position {}", i);
    if (!nodes[i].is_object()) return invalid(place + " is not an object");
    const auto id = nodes[i].find("id");
    if (id == nodes[i].end()) return invalid(place + " has no \"id\"");
    GraphNode node;
    NS_ASSIGN_OR_RETURN(node.id, to_id(*id, "the id of " + place));
    NS_RETURN_IF_ERROR(ids->add(node.id));
    graph->nodes.push_back(std::move(node));
  }
  return {};
}

void sort_inputs(ComputationGraph* graph) {
  for (GraphNode& node : graph->nodes) {
    std::sort(node.inputs.begin(), node.inputs.end());
    node.inputs.erase(std::unique(node.inputs.begin(), node.inputs.end()), node.inputs.end());
  }
}

Expected<void> read_own_node(const json& object, const Ids& ids, GraphNode* node, std::size_t* edges) {
  const std::string where = fmt::format("node \"{}\"", node->id);
  const Fields fields(object, where);
  NS_RETURN_IF_ERROR(fields.only({"id", "op", "work", "param_bytes", "output_bytes", "transfer", "inputs"}));
  NS_ASSIGN_OR_RETURN(node->op, fields.text("op"));
  NS_ASSIGN_OR_RETURN(node->work, fields.number("work", {}));
  NS_ASSIGN_OR_RETURN(node->param_bytes, fields.number("param_bytes", 0));
  NS_ASSIGN_OR_RETURN(node->output_bytes, fields.number("output_bytes", 0));
  NS_ASSIGN_OR_RETURN(node->transfer, fields.number("transfer", 0));
  const auto inputs = object.find("inputs");
  if (inputs == object.end()) return {};
  if (!inputs->is_array()) return invalid(where + ": \"inputs\" is not a list");
  if ((*edges += inputs->size()) > max_edges)
    return invalid(fmt::format("the graph has more than {} edges", max_edges));
  for (const json& input : *inputs) {
    NS_ASSIGN_OR_RETURN(const std::uint32_t u, ids.find(input, where + ": an input"));
    node->inputs.push_back(u);
  }
  return {};
}

Expected<void> read_colocation(const json& document, const Ids& ids, ComputationGraph* graph) {
  const auto sets = document.find("colocate");
  if (sets == document.end()) return {};
  if (!sets->is_array()) return invalid("\"colocate\" is not a list of lists of ids");
  for (const json& set : *sets) {
    if (!set.is_array()) return invalid("\"colocate\" is not a list of lists of ids");
    std::vector<std::uint32_t> members;
    for (const json& id : set) {
      NS_ASSIGN_OR_RETURN(const std::uint32_t v, ids.find(id, "\"colocate\""));
      members.push_back(v);
    }
    if (!members.empty()) graph->colocated.push_back(std::move(members));
  }
  return {};
}

Expected<ComputationGraph> read_own(const json& document) {
  ComputationGraph graph;
  Ids ids;
  const Fields top(document, "the graph");
  NS_ASSIGN_OR_RETURN(const std::string unit, top.text("unit"));
  NS_RETURN_IF_ERROR(set_unit(&graph, unit));
  NS_ASSIGN_OR_RETURN(graph.printed_transfers, top.flag("printed_transfers"));
  NS_ASSIGN_OR_RETURN(graph.convention, top.text("convention", max_convention));
  NS_ASSIGN_OR_RETURN(const json* nodes, list(document, "nodes", max_nodes));
  NS_RETURN_IF_ERROR(add_nodes(*nodes, &graph, &ids));
  std::size_t edges = 0;
  for (std::size_t i = 0; i < nodes->size(); ++i) {
    NS_RETURN_IF_ERROR(read_own_node((*nodes)[i], ids, &graph.nodes[i], &edges));
  }
  NS_RETURN_IF_ERROR(read_colocation(document, ids, &graph));
  if (graph.convention.empty()) {
    graph.convention = fmt::format(
        "own form: work in {}; a tensor costs {}, once per producer for each consuming block and once on "
        "output",
        graph.unit, graph.printed_transfers ? "its transfer as printed" : "output_bytes / bandwidth");
  }
  return graph;
}

Expected<void> read_edges(const json& edges, const Ids& ids, ComputationGraph* graph) {
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const std::string where = fmt::format("the edge at position {}", i);
    if (!edges[i].is_object()) return invalid(where + " is not an object");
    for (const char* end : {"sourceId", "destId"}) {
      if (!edges[i].contains(end)) return invalid(fmt::format("{} has no \"{}\"", where, end));
    }
    NS_ASSIGN_OR_RETURN(const std::uint32_t from, ids.find(edges[i]["sourceId"], where));
    NS_ASSIGN_OR_RETURN(const std::uint32_t to, ids.find(edges[i]["destId"], where));
    const Fields fields(edges[i], where);
    NS_ASSIGN_OR_RETURN(const double cost, fields.number("cost", {}));
    NS_ASSIGN_OR_RETURN(const double size, fields.number("size", 0));
    GraphNode& producer = graph->nodes[from];
    producer.transfer = std::max(producer.transfer, cost);
    producer.output_bytes = std::max(producer.output_bytes, size);
    graph->nodes[to].inputs.push_back(from);
  }
  return {};
}

Expected<ComputationGraph> read_public(const json& document) {
  ComputationGraph graph;
  Ids ids;
  graph.printed_transfers = true;
  graph.unit = "ms";
  graph.unit_seconds = 1e-3;
  NS_ASSIGN_OR_RETURN(const json* nodes, list(document, "nodes", max_nodes));
  NS_ASSIGN_OR_RETURN(const json* edges, list(document, "edges", max_edges));
  NS_RETURN_IF_ERROR(add_nodes(*nodes, &graph, &ids));
  for (std::size_t i = 0; i < nodes->size(); ++i) {
    GraphNode& node = graph.nodes[i];
    const Fields fields((*nodes)[i], fmt::format("node \"{}\"", node.id));
    NS_ASSIGN_OR_RETURN(node.work, fields.number("fpgaLatency", {}));
    NS_ASSIGN_OR_RETURN(node.param_bytes, fields.number("size", 0));
    NS_ASSIGN_OR_RETURN(node.op, fields.text("name"));
  }
  NS_RETURN_IF_ERROR(read_edges(*edges, ids, &graph));
  graph.convention =
      "device-placement graph: work = fpgaLatency (ms); a tensor costs its edge's cost as printed, once per "
      "producer "
      "for each consuming block and once on output; colorClass, isBackwardNode, max* and supported* are "
      "ignored; no "
      "memory limit unless given";
  return graph;
}

}  // namespace

Expected<ComputationGraph> parse_graph(ByteSpan bytes) {
  NS_ASSIGN_OR_RETURN(const json document, parse(bytes, "graph file"));
  if (!document.is_object()) return invalid("the graph file is not a JSON object with a list \"nodes\"");
  NS_ASSIGN_OR_RETURN(ComputationGraph graph,
                      document.contains("edges") ? read_public(document) : read_own(document));
  sort_inputs(&graph);
  NS_RETURN_IF_ERROR(validate(graph));
  return graph;
}

std::string format_graph(const ComputationGraph& graph) {
  using Object = nlohmann::ordered_json;
  Object nodes = Object::array();
  for (const GraphNode& node : graph.nodes) {
    Object object{{"id", node.id}};
    if (!node.op.empty()) object["op"] = node.op;
    object["work"] = node.work;
    if (node.param_bytes != 0) object["param_bytes"] = node.param_bytes;
    if (node.output_bytes != 0) object["output_bytes"] = node.output_bytes;
    if (node.transfer != 0) object["transfer"] = node.transfer;
    if (!node.inputs.empty()) {
      Object inputs = Object::array();
      for (const std::uint32_t u : node.inputs) inputs.push_back(graph.nodes[u].id);
      object["inputs"] = std::move(inputs);
    }
    nodes.push_back(std::move(object));
  }
  Object document{{"unit", graph.unit}};
  if (!graph.convention.empty()) document["convention"] = graph.convention;
  if (graph.printed_transfers) document["printed_transfers"] = true;
  document["nodes"] = std::move(nodes);
  if (!graph.colocated.empty()) {
    Object sets = Object::array();
    for (const auto& set : graph.colocated) {
      Object ids = Object::array();
      for (const std::uint32_t v : set) ids.push_back(graph.nodes[v].id);
      sets.push_back(std::move(ids));
    }
    document["colocate"] = std::move(sets);
  }
  // An id that is no UTF-8 (JSON from elsewhere can't have one, protobuf can) is repaired, not refused.
  return document.dump(1, ' ', false, Object::error_handler_t::replace) + "\n";
}

Expected<std::vector<Peer>> parse_peers(ByteSpan bytes) {
  NS_ASSIGN_OR_RETURN(json document, parse(bytes, "peers file"));
  if (document.is_object() && document.contains("peers")) document = json(document["peers"]);
  if (!document.is_array())
    return invalid("the peers file is neither a list nor an object with a list \"peers\"");
  if (document.empty()) return invalid("the peers file lists no peers");
  if (document.size() > max_blocks) {
    return invalid(fmt::format("the peers file lists {} peers; the most is {}", document.size(), max_blocks));
  }
  std::vector<Peer> peers;
  for (std::size_t i = 0; i < document.size(); ++i) {
    const std::string where = fmt::format("the peer at position {}", i);
    if (!document[i].is_object()) return invalid(where + " is not an object");
    const Fields fields(document[i], where);
    NS_RETURN_IF_ERROR(fields.only({"name", "speed", "memory", "bandwidth", "stream_bandwidth"}));
    Peer peer;
    NS_ASSIGN_OR_RETURN(peer.name, fields.text("name"));
    if (peer.name.empty()) peer.name = fmt::format("peer {}", i + 1);
    NS_ASSIGN_OR_RETURN(peer.speed, fields.number("speed", 1));
    NS_ASSIGN_OR_RETURN(peer.memory, fields.number("memory", unlimited));
    NS_ASSIGN_OR_RETURN(peer.bandwidth, fields.number("bandwidth", unlimited));
    NS_ASSIGN_OR_RETURN(peer.stream_bandwidth, fields.number("stream_bandwidth", 0));
    peers.push_back(std::move(peer));
  }
  return peers;
}

}  // namespace neuroshard::partition
