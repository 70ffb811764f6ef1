#include "core/partition/search/detail/block_cut.h"

#include <algorithm>
#include <limits>

namespace neuroshard::partition::detail {
namespace {
constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr std::uint32_t unreached = ~std::uint32_t{0};
}  // namespace

BlockCut::BlockCut(const TensorGraph& graph, double work_factor, double io_factor) : nodes_(graph.size()) {
  const std::size_t vertices = nodes_ + 2 * graph.tensors.size();
  out_.resize(vertices);
  level_.assign(vertices, unreached);
  at_.resize(vertices);
  sink_initial_.assign(vertices, 0);
  for (NodeIndex v = 0; v < nodes_; ++v) sink_initial_[v] = graph.work[v] * work_factor;
  std::uint32_t extra = static_cast<std::uint32_t>(nodes_);
  for (const Tensor& tensor : graph.tensors) {
    const double cost = tensor.cost * io_factor;
    if (!(cost > 0)) continue;
    const std::uint32_t leaves = extra++;
    const std::uint32_t enters = extra++;
    add_arc(tensor.producer, leaves, cost);
    add_arc(enters, tensor.producer, cost);
    for (const NodeIndex consumer : tensor.consumers) {
      add_arc(leaves, consumer, infinite);
      add_arc(consumer, enters, infinite);
    }
  }
  for (const Arc& arc : arcs_) initial_.push_back(arc.capacity);
  sink_ = sink_initial_;
}

void BlockCut::add_arc(std::uint32_t from, std::uint32_t to, double capacity) {
  out_[from].push_back(static_cast<std::uint32_t>(arcs_.size()));
  arcs_.push_back({to, capacity});
  out_[to].push_back(static_cast<std::uint32_t>(arcs_.size()));
  arcs_.push_back({from, 0});
}

// Distances from the sources up to the first layer that can reach the sink.
bool BlockCut::layer(const std::vector<NodeIndex>& sources, const std::vector<std::uint8_t>& outside) {
  for (const std::uint32_t v : queue_) level_[v] = unreached;
  queue_.assign(sources.begin(), sources.end());
  for (const NodeIndex source : sources) level_[source] = at_[source] = 0;
  std::uint32_t sink_level = unreached;
  for (std::size_t i = 0; i < queue_.size(); ++i) {
    const std::uint32_t v = queue_[i];
    if (level_[v] >= sink_level) break;  // deeper ones are on no shortest path
    if (sink_[v] > 0 || (v < nodes_ && outside[v])) sink_level = level_[v] + 1;
    for (const std::uint32_t a : out_[v]) {
      if (!(arcs_[a].capacity > 0) || level_[arcs_[a].to] != unreached) continue;
      level_[arcs_[a].to] = level_[v] + 1;
      at_[arcs_[a].to] = 0;
      queue_.push_back(arcs_[a].to);
    }
  }
  return sink_level != unreached;
}

// Dinic's depth-first search; the depth is that of the layering.
double BlockCut::push(std::uint32_t v, double most, const std::vector<std::uint8_t>& outside) {
  if (v < nodes_ && outside[v]) return most;
  double sent = std::min(most, sink_[v]);
  if (sent > 0) {
    sink_[v] -= sent;
    drained_.push_back(v);
  }
  for (; at_[v] < out_[v].size(); ++at_[v]) {
    if (!(sent < most)) return sent;
    const std::uint32_t a = out_[v][at_[v]];
    if (!(arcs_[a].capacity > 0) || level_[arcs_[a].to] != level_[v] + 1) continue;
    const double got = push(arcs_[a].to, std::min(most - sent, arcs_[a].capacity), outside);
    if (!(got > 0)) continue;
    arcs_[a].capacity -= got;
    arcs_[a ^ 1].capacity += got;
    used_.push_back(a);
    sent += got;
  }
  return sent;
}

double BlockCut::cheapest(const std::vector<NodeIndex>& inside, const std::vector<std::uint8_t>& outside,
                          double limit) {
  // Only what the last call touched is put back.
  for (const std::uint32_t a : used_) {
    arcs_[a].capacity = initial_[a];
    arcs_[a ^ 1].capacity = initial_[a ^ 1];
  }
  for (const std::uint32_t v : drained_) sink_[v] = sink_initial_[v];
  used_.clear();
  drained_.clear();
  double flow = 0;
  while (flow <= limit) {
    if (!layer(inside, outside)) {
      block_.assign(nodes_, 0);
      for (const std::uint32_t v : queue_) {
        if (v < nodes_) block_[v] = 1;
      }
      return flow;
    }
    // Slightly more than what the limit needs, so that passing it shows.
    double got = 0;
    for (const NodeIndex source : inside) got += push(source, limit * 1.001 + 1e-300 - flow - got, outside);
    if (!(got > 0)) break;
    flow += got;
  }
  return flow;
}

}  // namespace neuroshard::partition::detail
