#include "core/partition/graph/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "core/base/utf8.h"

namespace neuroshard::partition {
namespace {

// Names in the message are those of a foreign file.
Error invalid(const std::string& message) {
  return make_error(ErrorCode::InvalidArgument, one_line(message));
}

// One cycle among the nodes that Kahn's algorithm could not place, for the message.
std::string some_cycle(const ComputationGraph& graph, const std::vector<std::uint32_t>& missing) {
  std::uint32_t v = 0;
  while (missing[v] == 0) ++v;
  // Walking inputs that are not placed either must come back to a node of the walk.
  std::vector<std::uint32_t> walk, place(graph.nodes.size(), ~std::uint32_t{0});
  while (place[v] == ~std::uint32_t{0}) {
    place[v] = static_cast<std::uint32_t>(walk.size());
    walk.push_back(v);
    for (const std::uint32_t u : graph.nodes[v].inputs) {
      if (missing[u] > 0) {
        v = u;
        break;
      }
    }
  }
  std::string text;
  constexpr std::size_t shown = 8;
  const std::size_t length = walk.size() - place[v];
  for (std::size_t i = 0; i < std::min(length, shown); ++i) {
    text += fmt::format("\"{}\" reads ", graph.nodes[walk[place[v] + i]].id);
  }
  return text +
         (length > shown ? fmt::format("… ({} nodes)", length) : fmt::format("\"{}\"", graph.nodes[v].id));
}

Expected<void> check_cycles(const ComputationGraph& graph) {
  std::vector<std::uint32_t> missing, ready;
  std::vector<std::vector<std::uint32_t>> readers(graph.nodes.size());
  for (std::uint32_t v = 0; v < graph.nodes.size(); ++v) {
    missing.push_back(static_cast<std::uint32_t>(graph.nodes[v].inputs.size()));
    if (missing[v] == 0) ready.push_back(v);
    for (const std::uint32_t u : graph.nodes[v].inputs) readers[u].push_back(v);
  }
  std::size_t placed = 0;
  for (; !ready.empty(); ++placed) {
    const std::uint32_t v = ready.back();
    ready.pop_back();
    for (const std::uint32_t w : readers[v]) {
      if (--missing[w] == 0) ready.push_back(w);
    }
  }
  if (placed == graph.nodes.size()) return {};
  return invalid("the graph has a cycle: " + some_cycle(graph, missing));
}

Expected<void> check_quantities(const GraphNode& node) {
  const std::pair<const char*, double> quantities[] = {{"work", node.work},
                                                       {"parameter bytes", node.param_bytes},
                                                       {"output bytes", node.output_bytes},
                                                       {"transfer", node.transfer}};
  for (const auto& [what, value] : quantities) {
    if (!std::isfinite(value) || value < 0 || value > max_quantity) {
      return invalid(fmt::format("node \"{}\": {} is {}; it must be between 0 and {:g}", node.id, what, value,
                                 max_quantity));
    }
  }
  return {};
}

}  // namespace

std::size_t ComputationGraph::edge_count() const {
  std::size_t count = 0;
  for (const GraphNode& node : nodes) count += node.inputs.size();
  return count;
}

Expected<void> set_unit(ComputationGraph* graph, const std::string& unit) {
  const std::pair<const char*, double> units[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}};
  for (const auto& [name, seconds] : units) {
    if (!(unit == name || (unit.empty() && seconds == 1))) continue;
    graph->unit = name;
    graph->unit_seconds = seconds;
    return {};
  }
  return invalid(fmt::format("the graph's \"unit\" is \"{}\"; it must be \"s\", \"ms\" or \"us\"",
                             valid_utf8(unit, 40)));
}

Expected<void> validate(const ComputationGraph& graph) {
  const std::size_t n = graph.nodes.size();
  if (n == 0) return invalid("the graph has no nodes");
  if (n > max_nodes) return invalid(fmt::format("the graph has {} nodes; the most is {}", n, max_nodes));
  if (graph.edge_count() > max_edges) {
    return invalid(fmt::format("the graph has {} edges; the most is {}", graph.edge_count(), max_edges));
  }
  std::unordered_set<std::string_view> ids;
  for (std::size_t v = 0; v < n; ++v) {
    const GraphNode& node = graph.nodes[v];
    if (node.id.empty()) return invalid(fmt::format("the node at position {} has no id", v));
    if (node.id.size() > max_id_length) {
      return invalid(fmt::format("the node at position {} has an id of {} bytes; the most is {}", v,
                                 node.id.size(), max_id_length));
    }
    if (!ids.insert(node.id).second) return invalid(fmt::format("two nodes have the id \"{}\"", node.id));
    NS_RETURN_IF_ERROR(check_quantities(node));
    std::vector<std::uint32_t> inputs = node.inputs;
    std::sort(inputs.begin(), inputs.end());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] >= n)
        return invalid(fmt::format("node \"{}\" reads a node that does not exist", node.id));
      if (inputs[i] == v)
        return invalid(fmt::format("the graph has a cycle: node \"{}\" reads itself", node.id));
      if (i > 0 && inputs[i] == inputs[i - 1]) {
        return invalid(fmt::format("node \"{}\" reads \"{}\" twice", node.id, graph.nodes[inputs[i]].id));
      }
    }
  }
  for (const auto& set : graph.colocated) {
    for (const std::uint32_t v : set) {
      if (v >= n) return invalid("a co-located set names a node that does not exist");
    }
  }
  return check_cycles(graph);
}

}  // namespace neuroshard::partition
