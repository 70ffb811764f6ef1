#include "core/partition/graph/tensor_graph.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>

#include "core/base/check.h"

namespace neuroshard::partition {
namespace {

void sort_unique(std::vector<NodeIndex>* values) {
  std::sort(values->begin(), values->end());
  values->erase(std::unique(values->begin(), values->end()), values->end());
}

class UnionFind {
 public:
  explicit UnionFind(std::size_t n) : parent_(n) { std::iota(parent_.begin(), parent_.end(), 0); }
  NodeIndex find(NodeIndex x) {
    while (parent_[x] != x) x = parent_[x] = parent_[parent_[x]];
    return x;
  }
  void unite(NodeIndex a, NodeIndex b) { parent_[find(a)] = find(b); }

 private:
  std::vector<NodeIndex> parent_;
};

// Tarjan's components without recursion; `component` numbers them in reverse topological order.
class Components {
 public:
  explicit Components(const std::vector<std::vector<NodeIndex>>& successors)
      : next_(successors),
        index_(successors.size(), unseen),
        low_(successors.size()),
        component(successors.size()) {
    for (NodeIndex v = 0; v < successors.size(); ++v) {
      if (index_[v] == unseen) visit(v);
    }
  }

 private:
  static constexpr NodeIndex unseen = ~NodeIndex{0};
  struct Frame {
    NodeIndex node;
    std::size_t at;
  };

  void visit(NodeIndex root) {
    std::vector<Frame> frames{{root, 0}};
    open(root);
    while (!frames.empty()) {
      Frame& frame = frames.back();
      const NodeIndex v = frame.node;
      if (frame.at < next_[v].size()) {
        const NodeIndex w = next_[v][frame.at++];
        if (index_[w] == unseen) {
          open(w);
          frames.push_back({w, 0});
        } else if (on_stack_[w]) {
          low_[v] = std::min(low_[v], index_[w]);
        }
        continue;
      }
      if (low_[v] == index_[v]) close(v);
      frames.pop_back();
      if (!frames.empty()) low_[frames.back().node] = std::min(low_[frames.back().node], low_[v]);
    }
  }
  void open(NodeIndex v) {
    if (on_stack_.empty()) on_stack_.resize(next_.size());
    index_[v] = low_[v] = counter_++;
    stack_.push_back(v);
    on_stack_[v] = true;
  }
  void close(NodeIndex v) {
    for (;;) {
      const NodeIndex w = stack_.back();
      stack_.pop_back();
      on_stack_[w] = false;
      component[w] = count;
      if (w == v) break;
    }
    ++count;
  }

  const std::vector<std::vector<NodeIndex>>& next_;
  std::vector<NodeIndex> index_, low_, stack_;
  std::vector<bool> on_stack_;
  NodeIndex counter_ = 0;

 public:
  std::vector<NodeIndex> component;
  NodeIndex count = 0;
};

// Largest sum of tensors inside groups that are alive at once, members running in the graph's order.
std::vector<double> inner_scratch(const TensorGraph& graph, const Grouping& grouping) {
  const std::vector<NodeIndex> order = topological_order(graph);
  std::vector<std::uint32_t> position(graph.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) position[order[i]] = i;
  std::vector<std::vector<TensorIndex>> dies(graph.size());
  std::vector<bool> inner(graph.tensors.size());
  for (TensorIndex t = 0; t < graph.tensors.size(); ++t) {
    const Tensor& tensor = graph.tensors[t];
    std::uint32_t last = 0;
    inner[t] = true;
    for (const NodeIndex c : tensor.consumers) {
      last = std::max(last, position[c]);
      if (grouping.group_of[c] != grouping.group_of[tensor.producer]) inner[t] = false;
    }
    if (inner[t]) dies[order[last]].push_back(t);
  }
  std::vector<double> alive(grouping.count), most(grouping.count);
  for (const NodeIndex v : order) {
    const NodeIndex g = grouping.group_of[v];
    for (const TensorIndex t : graph.produced[v]) {
      if (inner[t]) alive[g] += graph.tensors[t].bytes;
    }
    most[g] = std::max(most[g], alive[g] + graph.scratch[v]);
    for (const TensorIndex t : dies[v]) alive[g] -= graph.tensors[t].bytes;
  }
  return most;
}

}  // namespace

double TensorGraph::total_work() const {
  return std::accumulate(work.begin(), work.end(), 0.0);
}

double TensorGraph::total_params() const {
  return std::accumulate(params.begin(), params.end(), 0.0);
}

void index_tensors(TensorGraph* graph) {
  const std::size_t n = graph->size();
  for (auto* lists : {&graph->produced, &graph->consumed}) lists->assign(n, {});
  for (auto* lists : {&graph->successors, &graph->predecessors}) lists->assign(n, {});
  for (TensorIndex t = 0; t < graph->tensors.size(); ++t) {
    const Tensor& tensor = graph->tensors[t];
    graph->produced[tensor.producer].push_back(t);
    for (const NodeIndex c : tensor.consumers) {
      graph->consumed[c].push_back(t);
      graph->successors[tensor.producer].push_back(c);
      graph->predecessors[c].push_back(tensor.producer);
    }
  }
  for (auto& list : graph->successors) sort_unique(&list);
  for (auto& list : graph->predecessors) sort_unique(&list);
}

std::vector<NodeIndex> topological_order(const TensorGraph& graph) {
  std::vector<std::uint32_t> missing(graph.size());
  std::priority_queue<NodeIndex, std::vector<NodeIndex>, std::greater<>> ready;
  for (NodeIndex v = 0; v < graph.size(); ++v) {
    missing[v] = static_cast<std::uint32_t>(graph.predecessors[v].size());
    if (missing[v] == 0) ready.push(v);
  }
  std::vector<NodeIndex> order;
  order.reserve(graph.size());
  while (!ready.empty()) {
    const NodeIndex v = ready.top();
    ready.pop();
    order.push_back(v);
    for (const NodeIndex w : graph.successors[v]) {
      if (--missing[w] == 0) ready.push(w);
    }
  }
  NS_CHECK(order.size() == graph.size());
  return order;
}

Grouping close_groups(const TensorGraph& graph,
                      const std::vector<std::pair<NodeIndex, NodeIndex>>& together) {
  UnionFind sets(graph.size());
  for (const auto& [a, b] : together) sets.unite(a, b);
  std::vector<std::vector<NodeIndex>> quotient(graph.size());
  for (NodeIndex v = 0; v < graph.size(); ++v) {
    for (const NodeIndex w : graph.successors[v]) {
      if (sets.find(v) != sets.find(w)) quotient[sets.find(v)].push_back(sets.find(w));
    }
  }
  // A cycle of the quotient must share a block, so its groups become one; the result has no cycle.
  const Components components(quotient);
  std::vector<NodeIndex> label(components.count, ~NodeIndex{0});
  std::vector<NodeIndex> used;
  for (NodeIndex v = 0; v < graph.size(); ++v) used.push_back(components.component[sets.find(v)]);
  std::vector<NodeIndex> sorted = used;
  sort_unique(&sorted);
  Grouping grouping;
  grouping.count = static_cast<NodeIndex>(sorted.size());
  for (NodeIndex i = 0; i < sorted.size(); ++i) label[sorted[i]] = grouping.count - 1 - i;
  for (const NodeIndex c : used) grouping.group_of.push_back(label[c]);
  return grouping;
}

TensorGraph contract(const TensorGraph& graph, const Grouping& grouping) {
  TensorGraph result;
  result.work.assign(grouping.count, 0);
  result.params.assign(grouping.count, 0);
  for (NodeIndex v = 0; v < graph.size(); ++v) {
    result.work[grouping.group_of[v]] += graph.work[v];
    result.params[grouping.group_of[v]] += graph.params[v];
  }
  result.scratch = inner_scratch(graph, grouping);
  std::map<std::pair<NodeIndex, std::vector<NodeIndex>>, TensorIndex> known;
  for (const Tensor& tensor : graph.tensors) {
    Tensor outer{grouping.group_of[tensor.producer], tensor.cost, tensor.bytes, {}};
    for (const NodeIndex c : tensor.consumers) {
      if (grouping.group_of[c] != outer.producer) outer.consumers.push_back(grouping.group_of[c]);
    }
    if (outer.consumers.empty()) continue;
    sort_unique(&outer.consumers);
    const auto [at, is_new] =
        known.try_emplace({outer.producer, outer.consumers}, static_cast<TensorIndex>(result.tensors.size()));
    if (is_new) {
      result.tensors.push_back(std::move(outer));
    } else {
      result.tensors[at->second].cost += tensor.cost;
      result.tensors[at->second].bytes += tensor.bytes;
    }
  }
  index_tensors(&result);
  return result;
}

Grouping compose(const Grouping& inner, const Grouping& outer) {
  Grouping result;
  result.count = outer.count;
  for (const NodeIndex middle : inner.group_of) result.group_of.push_back(outer.group_of[middle]);
  return result;
}

}  // namespace neuroshard::partition
