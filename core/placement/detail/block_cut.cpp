#include "core/placement/detail/block_cut.h"

#include <algorithm>
#include <limits>

namespace neuroshard::placement::detail {
namespace {
constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr std::uint32_t unreached = ~std::uint32_t{0};
}  // namespace

BlockCut::BlockCut(const TensorGraph& graph, double work_factor, double io_factor) : nodes_(graph.size()) {
  const std::size_t vertices = nodes_ + 2 * graph.tensors.size();
  out_.resize(vertices);
  level_.resize(vertices);
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
}

void BlockCut::add_arc(std::uint32_t from, std::uint32_t to, double capacity) {
  out_[from].push_back(static_cast<std::uint32_t>(arcs_.size()));
  arcs_.push_back({to, capacity});
  out_[to].push_back(static_cast<std::uint32_t>(arcs_.size()));
  arcs_.push_back({from, 0});
}

// Distances from the source up to the first layer that can reach the sink.
bool BlockCut::layer(std::uint32_t source, const std::vector<std::uint8_t>& outside) {
  std::fill(level_.begin(), level_.end(), unreached);
  queue_.assign(1, source);
  level_[source] = 0;
  bool reached = false;
  for (std::size_t i = 0; i < queue_.size(); ++i) {
    const std::uint32_t v = queue_[i];
    if (sink_[v] > 0 || (v < nodes_ && outside[v])) reached = true;
    for (const std::uint32_t a : out_[v]) {
      if (!(arcs_[a].capacity > 0) || level_[arcs_[a].to] != unreached) continue;
      level_[arcs_[a].to] = level_[v] + 1;
      queue_.push_back(arcs_[a].to);
    }
  }
  return reached;
}

// Dinic's depth-first search; the depth is that of the layering.
double BlockCut::push(std::uint32_t v, double most, const std::vector<std::uint8_t>& outside) {
  if (v < nodes_ && outside[v]) return most;
  double sent = std::min(most, sink_[v]);
  sink_[v] -= sent;
  for (; at_[v] < out_[v].size(); ++at_[v]) {
    if (!(sent < most)) return sent;
    const std::uint32_t a = out_[v][at_[v]];
    if (!(arcs_[a].capacity > 0) || level_[arcs_[a].to] != level_[v] + 1) continue;
    const double got = push(arcs_[a].to, std::min(most - sent, arcs_[a].capacity), outside);
    arcs_[a].capacity -= got;
    arcs_[a ^ 1].capacity += got;
    sent += got;
  }
  return sent;
}

double BlockCut::cheapest(NodeIndex inside, const std::vector<std::uint8_t>& outside, double limit) {
  for (std::size_t a = 0; a < arcs_.size(); ++a) arcs_[a].capacity = initial_[a];
  sink_ = sink_initial_;
  double flow = 0;
  while (flow <= limit) {
    if (!layer(inside, outside)) {
      block_.resize(nodes_);
      for (std::size_t v = 0; v < nodes_; ++v) block_[v] = level_[v] != unreached;
      return flow;
    }
    std::fill(at_.begin(), at_.end(), 0);
    // Slightly more than what the limit needs, so that passing it shows.
    const double got = push(inside, limit * 1.001 + 1e-300 - flow, outside);
    if (!(got > 0)) break;
    flow += got;
  }
  return flow;
}

}  // namespace neuroshard::placement::detail
