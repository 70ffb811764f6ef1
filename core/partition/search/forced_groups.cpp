#include "core/partition/search/forced_groups.h"

#include <algorithm>
#include <cmath>

#include "core/partition/search/detail/affordable_block.h"
#include "core/partition/search/detail/reachability.h"

namespace neuroshard::partition {
namespace {

using detail::AffordableBlock;
using detail::BitRows;
using detail::Reachability;

// Sums are compared with this relative allowance for rounding, always to the side that proves less.
constexpr double rounding = 1e-10;
// Beyond it the pairs on common paths (n³ / 64) take longer than they help.
constexpr std::size_t max_pair_nodes = 1200;

// One round of the rules on one contracted graph.
class Round {
 public:
  Round(const TensorGraph& graph, const std::vector<Device>& devices, double limit, std::uint32_t branching,
        const std::function<bool()>& stop)
      : graph_(graph),
        devices_(devices),
        best_(best_of(devices)),
        limit_(limit * (1 + rounding)),
        branching_(branching),
        stop_(stop),
        reach_(graph),
        apart_(graph.size(), graph.size()) {
    for (const Device& device : devices) capacity_ += limit_ / device.work_factor;
    equal_ =
        std::all_of(devices.begin(), devices.end(), [&](const Device& d) { return d == devices.front(); });
  }

  // False: T is refuted.
  bool run() { return windows() && pairs() && slack() && cuts(); }
  std::vector<std::pair<NodeIndex, NodeIndex>> together, separated;
  // Pairs that an earlier round found incompatible.
  void separate(NodeIndex a, NodeIndex b) {
    apart_.set(a, b);
    apart_.set(b, a);
  }
  bool stopped = false;

 private:
  bool windows();
  bool pairs();
  bool slack();
  bool cuts();
  double sum_row(const std::uint64_t* row, const std::vector<double>& values) const {
    double sum = 0;
    detail::for_each_bit(row, nullptr, reach_.after.words(), [&](NodeIndex v) { sum += values[v]; });
    return sum;
  }

  const TensorGraph& graph_;
  const std::vector<Device>& devices_;
  const Device best_;
  const double limit_;
  const std::uint32_t branching_;
  const std::function<bool()>& stop_;
  Reachability reach_;
  BitRows apart_;        // symmetric
  double capacity_ = 0;  // work that all devices do in T
  bool equal_ = false;
  std::vector<int> earliest_, latest_;
};

bool Round::windows() {
  if (!equal_) return true;
  const double block = limit_ / best_.work_factor;
  if (!(block > 0)) return true;  // no number of such blocks does any work
  const int k = static_cast<int>(devices_.size());
  // A block more for a fraction that is not rounding.
  const auto blocks = [&](double work) {
    return std::max(1, static_cast<int>(std::ceil(work / block - 1e-9)));
  };
  for (NodeIndex v = 0; v < graph_.size(); ++v) {
    const double own = graph_.work[v];
    earliest_.push_back(blocks(sum_row(reach_.before.row(v), graph_.work) + own));
    latest_.push_back(k + 1 - blocks(sum_row(reach_.after.row(v), graph_.work) + own));
  }
  // A block's index is at least that of every node before it.
  const std::vector<NodeIndex> order = topological_order(graph_);
  for (const NodeIndex v : order) {
    for (const NodeIndex u : graph_.predecessors[v]) earliest_[v] = std::max(earliest_[v], earliest_[u]);
  }
  for (std::size_t i = order.size(); i-- > 0;) {
    for (const NodeIndex s : graph_.successors[order[i]])
      latest_[order[i]] = std::min(latest_[order[i]], latest_[s]);
  }
  for (NodeIndex v = 0; v < graph_.size(); ++v) {
    if (earliest_[v] > latest_[v]) return false;
  }
  std::vector<NodeIndex> only(devices_.size() + 2, ~NodeIndex{0});
  for (NodeIndex v = 0; v < graph_.size(); ++v) {
    if (earliest_[v] != latest_[v]) continue;
    NodeIndex& first = only[static_cast<std::size_t>(earliest_[v])];
    if (first == ~NodeIndex{0}) first = v;
    if (first != v) together.emplace_back(first, v);
  }
  return true;
}

bool Round::pairs() {
  const std::size_t n = graph_.size();
  const std::size_t words = reach_.after.words();
  const double most_work = limit_ / best_.work_factor;
  const bool hard_memory = best_.stream_factor == unlimited;
  const double most_params = hard_memory ? best_.memory * (1 + rounding) : unlimited;
  for (NodeIndex g = 0; g < n; ++g) {
    if (graph_.work[g] > most_work || graph_.params[g] > most_params) return false;
    for (NodeIndex h = g + 1; h < n; ++h) {
      if (graph_.work[g] + graph_.work[h] > most_work || graph_.params[g] + graph_.params[h] > most_params ||
          (!earliest_.empty() && (earliest_[g] > latest_[h] || earliest_[h] > latest_[g]))) {
        separate(g, h);
      }
    }
  }
  // Numbers are topological. A successor of a node that g can't share a block with can't either: the path
  // between contains that node. So only pairs that may still be together are summed up.
  std::vector<std::uint64_t> beyond(words);
  for (NodeIndex g = 0; g < n && n <= max_pair_nodes; ++g) {
    std::fill(beyond.begin(), beyond.end(), 0);
    detail::for_each_bit(reach_.after.row(g), nullptr, words, [&](NodeIndex h) {
      bool far = ((beyond[h / 64] >> (h % 64)) & 1) || apart_.test(g, h);
      if (!far) {
        double work = graph_.work[g] + graph_.work[h];
        double params = graph_.params[g] + graph_.params[h];
        detail::for_each_bit(reach_.after.row(g), reach_.before.row(h), words, [&](NodeIndex x) {
          work += graph_.work[x];
          params += graph_.params[x];
        });
        far = work > most_work || params > most_params;
      } else if ((beyond[h / 64] >> (h % 64)) & 1) {
        separate(g, h);
        return;
      }
      if (!far) return;
      separate(g, h);
      for (std::size_t w = 0; w < words; ++w) beyond[w] |= reach_.after.row(h)[w];
    });
  }
  return true;
}

bool Round::slack() {
  double slowest = 0;
  for (const Device& device : devices_) slowest = std::max(slowest, device.work_factor);
  // A lower bound on the cost of cutting a tensor, as work: it is sent once and received once.
  const double price = 2 * best_.io_factor / slowest;
  double left = capacity_ - graph_.total_work();
  std::vector<bool> cut(graph_.tensors.size());
  for (TensorIndex t = 0; t < graph_.tensors.size(); ++t) {
    const Tensor& tensor = graph_.tensors[t];
    cut[t] = std::any_of(tensor.consumers.begin(), tensor.consumers.end(),
                         [&](NodeIndex c) { return apart_.test(tensor.producer, c); });
    if (cut[t]) left -= price * tensor.cost;
  }
  if (left < 0) return false;
  for (TensorIndex t = 0; t < graph_.tensors.size(); ++t) {
    const Tensor& tensor = graph_.tensors[t];
    if (cut[t] || price * tensor.cost <= left) continue;
    for (const NodeIndex c : tensor.consumers) together.emplace_back(tensor.producer, c);
  }
  return true;
}

bool Round::cuts() {
  AffordableBlock affordable(graph_, best_.work_factor, best_.io_factor, limit_, reach_, apart_, branching_);
  const auto stop_now = [this] { return stopped = stopped || stop_(); };
  for (NodeIndex v = 0; v < graph_.size(); ++v) {
    if (stop_now()) return true;
    if (!affordable.with(v)) return false;
    for (const NodeIndex s : graph_.successors[v]) {
      if (apart_.test(v, s)) continue;
      if (stop_now()) return true;
      if (!affordable.with_but_without(v, s) || !affordable.with_but_without(s, v)) {
        together.emplace_back(v, s);
      } else if (branching_ > 1 && !affordable.with_both(v, s)) {
        separated.emplace_back(v, s);
      }
    }
  }
  return true;
}

}  // namespace

ForcedGroups force_groups(const TensorGraph& graph, const std::vector<Device>& devices, double limit,
                          std::uint32_t branching, const std::function<bool()>& stop) {
  ForcedGroups result;
  result.grouping = close_groups(graph, {});
  if (graph.size() > max_forced_nodes) {
    result.complete = false;
    return result;
  }
  TensorGraph contracted = contract(graph, result.grouping);
  std::vector<std::pair<NodeIndex, NodeIndex>> separated;
  for (;;) {
    Round round(contracted, devices, limit, branching, stop);
    for (const auto& [a, b] : separated) round.separate(a, b);
    if (!round.run()) {
      result.refuted = true;
      return result;
    }
    result.complete = !round.stopped;
    if (round.stopped || (round.together.empty() && round.separated.empty())) {
      round.separated.clear();
      if (round.together.empty()) return result;
    }
    const Grouping step = close_groups(contracted, round.together);
    separated.insert(separated.end(), round.separated.begin(), round.separated.end());
    for (auto& [a, b] : separated) {
      a = step.group_of[a];
      b = step.group_of[b];
      // A group that holds an incompatible pair is no part of any block.
      if (a == b) {
        result.refuted = true;
        return result;
      }
    }
    result.grouping = compose(result.grouping, step);
    contracted = contract(contracted, step);
    if (round.stopped) return result;
  }
}

}  // namespace neuroshard::partition
