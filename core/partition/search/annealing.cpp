#include "core/partition/search/annealing.h"

#include <algorithm>
#include <cmath>

#include "core/partition/search/orders.h"

namespace neuroshard::partition {
namespace {

constexpr double power = 16;

class Annealer {
 public:
  Annealer(const TensorGraph& graph, const BlockAssignment& start)
      : graph_(graph),
        blocks_(start.devices.size()),
        state_(start),
        work_(blocks_),
        io_(blocks_),
        params_(blocks_),
        cost_(blocks_),
        changed_(blocks_),
        readers_(graph.tensors.size() * blocks_),
        outside_(graph.tensors.size()) {
    for (TensorIndex t = 0; t < graph.tensors.size(); ++t) {
      const Tensor& tensor = graph.tensors[t];
      const std::uint32_t home = state_.block_of[tensor.producer];
      for (const NodeIndex c : tensor.consumers) {
        const std::uint32_t b = state_.block_of[c];
        if (readers(t, b)++ == 0 && b != home) io_[b] += tensor.cost;
        if (b != home && outside_[t]++ == 0) io_[home] += tensor.cost;
      }
    }
    for (NodeIndex v = 0; v < graph.size(); ++v) {
      work_[state_.block_of[v]] += graph.work[v];
      params_[state_.block_of[v]] += graph.params[v];
    }
    for (std::size_t b = 0; b < blocks_; ++b) cost_[b] = cost(b);
  }

  BlockAssignment run(const AnnealingPlan& plan, Rng* rng);

 private:
  std::uint32_t& readers(TensorIndex t, std::size_t block) { return readers_[t * blocks_ + block]; }
  double cost(std::size_t b) const { return state_.devices[b].block_cost(work_[b], io_[b], params_[b], 0); }
  double energy(double cost) const { return cost == unlimited ? 1e9 : std::pow(cost / scale_, power); }
  void move(NodeIndex v, std::uint32_t to);
  void touch(std::size_t b) {
    if (!changed_[b]) {
      changed_[b] = 1;
      list_.push_back(b);
    }
  }
  double settle();  // takes over the costs of the blocks that changed; the change of the energy
  bool pick(Rng* rng, NodeIndex* v, std::uint32_t* to);

  const TensorGraph& graph_;
  const std::size_t blocks_;
  BlockAssignment state_;
  std::vector<double> work_, io_, params_, cost_;
  std::vector<std::uint8_t> changed_;
  std::vector<std::size_t> list_;
  std::vector<std::uint32_t> readers_;  // consumers of a tensor per block
  std::vector<std::uint32_t> outside_;  // consumers outside the producer's block
  double scale_ = 1;
};

void Annealer::move(NodeIndex v, std::uint32_t to) {
  const std::uint32_t from = state_.block_of[v];
  touch(from);
  touch(to);
  work_[from] -= graph_.work[v];
  work_[to] += graph_.work[v];
  params_[from] -= graph_.params[v];
  params_[to] += graph_.params[v];
  for (const TensorIndex t : graph_.consumed[v]) {
    const double cost = graph_.tensors[t].cost;
    const std::uint32_t home = state_.block_of[graph_.tensors[t].producer];
    if (--readers(t, from) == 0 && from != home) io_[from] -= cost;
    if (readers(t, to)++ == 0 && to != home) io_[to] += cost;
    if (from == home && outside_[t]++ == 0) io_[home] += cost, touch(home);
    if (to == home && --outside_[t] == 0) io_[home] -= cost, touch(home);
  }
  for (const TensorIndex t : graph_.produced[v]) {
    const double cost = graph_.tensors[t].cost;
    const auto all = static_cast<std::uint32_t>(graph_.tensors[t].consumers.size());
    if (outside_[t] > 0) io_[from] -= cost;
    if (readers(t, from) > 0) io_[from] += cost;
    if (readers(t, to) > 0) io_[to] -= cost;
    outside_[t] = all - readers(t, to);
    if (outside_[t] > 0) io_[to] += cost;
  }
  state_.block_of[v] = to;
}

double Annealer::settle() {
  double change = 0;
  for (const std::size_t b : list_) {
    changed_[b] = 0;
    const double now = cost(b);
    change += energy(now) - energy(cost_[b]);
    cost_[b] = now;
  }
  list_.clear();
  return change;
}

bool Annealer::pick(Rng* rng, NodeIndex* v, std::uint32_t* to) {
  *v = static_cast<NodeIndex>(rng->below(graph_.size()));
  std::uint32_t low = 0, high = static_cast<std::uint32_t>(blocks_ - 1);
  for (const NodeIndex u : graph_.predecessors[*v]) low = std::max(low, state_.block_of[u]);
  for (const NodeIndex s : graph_.successors[*v]) high = std::min(high, state_.block_of[s]);
  const std::uint32_t own = state_.block_of[*v];
  if (low == high) return false;
  // Mostly to a neighbour.
  if (rng->below(4) != 0) {
    const bool up = own == low || (own != high && rng->below(2) == 0);
    *to = up ? own + 1 : own - 1;
    return true;
  }
  *to = low + static_cast<std::uint32_t>(rng->below(high - low));
  if (*to >= own) ++*to;
  return true;
}

BlockAssignment Annealer::run(const AnnealingPlan& plan, Rng* rng) {
  BlockAssignment best = state_;
  double best_cost = *std::max_element(cost_.begin(), cost_.end());
  scale_ = best_cost == unlimited ? 1 : best_cost;
  for (std::uint64_t i = 0; i < plan.moves; ++i) {
    if ((i & 4095) == 0 && plan.stop && plan.stop()) break;
    const double progress = static_cast<double>(i) / static_cast<double>(plan.moves);
    const double temperature = plan.start_temperature * std::pow(1e-4, progress);
    NodeIndex v = 0;
    std::uint32_t to = 0;
    if (!pick(rng, &v, &to)) continue;
    const std::uint32_t from = state_.block_of[v];
    move(v, to);
    const double change = settle();
    if (change > 0 && rng->uniform() >= std::exp(-change / temperature)) {
      move(v, from);
      settle();
      continue;
    }
    const double now = *std::max_element(cost_.begin(), cost_.end());
    if (now < best_cost * (1 - 1e-12)) {
      best_cost = now;
      best = state_;
    }
  }
  return best;
}

}  // namespace

BlockAssignment anneal(const TensorGraph& graph, const BlockAssignment& start, const AnnealingPlan& plan,
                       Rng* rng) {
  if (start.devices.size() < 2 || graph.size() < 2) return start;
  return Annealer(graph, start).run(plan, rng);
}

std::vector<NodeIndex> order_of_blocks(const TensorGraph& graph, const std::vector<std::uint32_t>& block_of) {
  std::vector<double> keys;
  for (const std::uint32_t b : block_of) keys.push_back(-static_cast<double>(b));
  return order_by_keys(graph, keys);
}

}  // namespace neuroshard::partition
