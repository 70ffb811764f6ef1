#include "core/placement/forced_groups.h"

#include <algorithm>
#include <cmath>

#include "core/placement/detail/block_cut.h"
#include "core/placement/detail/reachability.h"

namespace neuroshard::placement {
namespace {

using detail::BitRows;
using detail::BlockCut;
using detail::Reachability;

// Sums are compared with this relative allowance for rounding, always to the side that proves less.
constexpr double rounding = 1e-10;
// Beyond it the pairs on common paths (n³ / 64) take longer than they help.
constexpr std::size_t max_pair_nodes = 1200;

// One round of the rules on one contracted graph.
class Round {
 public:
  Round(const TensorGraph& graph, const std::vector<Device>& devices, double limit,
        const std::function<bool()>& stop)
      : graph_(graph),
        devices_(devices),
        best_(best_of(devices)),
        limit_(limit * (1 + rounding)),
        stop_(stop),
        reach_(graph),
        apart_(graph.size(), graph.size()) {
    for (const Device& device : devices) capacity_ += limit_ / device.work_factor;
    equal_ =
        std::all_of(devices.begin(), devices.end(), [&](const Device& d) { return d == devices.front(); });
  }

  // False: T is refuted.
  bool run() { return windows() && pairs() && slack() && cuts(); }
  std::vector<std::pair<NodeIndex, NodeIndex>> together;
  bool stopped = false;

 private:
  bool windows();
  bool pairs();
  bool slack();
  bool cuts();
  bool cut_pair(BlockCut* cut, NodeIndex in, NodeIndex out);
  void exclude(NodeIndex in, std::vector<std::uint8_t>* outside) const;
  bool witnessed(NodeIndex in, NodeIndex out) const;
  double sum_row(const std::uint64_t* row, const std::vector<double>& values) const {
    double sum = 0;
    detail::for_each_bit(row, nullptr, reach_.after.words(), [&](NodeIndex v) { sum += values[v]; });
    return sum;
  }

  const TensorGraph& graph_;
  const std::vector<Device>& devices_;
  const Device best_;
  const double limit_;
  const std::function<bool()>& stop_;
  Reachability reach_;
  BitRows apart_;        // symmetric
  double capacity_ = 0;  // work that all devices do in T
  bool equal_ = false;
  std::vector<int> earliest_, latest_;
  std::vector<std::vector<std::uint8_t>> witnesses_;
};

bool Round::windows() {
  if (!equal_) return true;
  const double block = limit_ / best_.work_factor;
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
  const auto separate = [&](NodeIndex a, NodeIndex b) {
    apart_.set(a, b);
    apart_.set(b, a);
  };
  for (NodeIndex g = 0; g < n; ++g) {
    if (graph_.work[g] > most_work || graph_.params[g] > most_params) return false;
    for (NodeIndex h = g + 1; h < n; ++h) {
      if (graph_.work[g] + graph_.work[h] > most_work || graph_.params[g] + graph_.params[h] > most_params ||
          (!earliest_.empty() && (earliest_[g] > latest_[h] || earliest_[h] > latest_[g]))) {
        separate(g, h);
      }
    }
    if (n > max_pair_nodes) continue;
    detail::for_each_bit(reach_.after.row(g), nullptr, words, [&](NodeIndex h) {
      if (apart_.test(g, h)) return;
      double work = graph_.work[g] + graph_.work[h];
      double params = graph_.params[g] + graph_.params[h];
      detail::for_each_bit(reach_.after.row(g), reach_.before.row(h), words, [&](NodeIndex x) {
        work += graph_.work[x];
        params += graph_.params[x];
      });
      if (work > most_work || params > most_params) separate(g, h);
    });
  }
  return true;
}

bool Round::slack() {
  double slowest = 0;
  for (const Device& device : devices_) slowest = std::max(slowest, device.work_factor);
  // What the cut of a tensor takes away at least, as work: it is sent once and received once.
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

void Round::exclude(NodeIndex in, std::vector<std::uint8_t>* outside) const {
  detail::for_each_bit(apart_.row(in), nullptr, apart_.words(), [&](NodeIndex v) { (*outside)[v] = 1; });
}

// Some affordable block with `in` and without `out` is known already.
bool Round::witnessed(NodeIndex in, NodeIndex out) const {
  const bool later = reach_.after.test(in, out);
  const BitRows& beyond = later ? reach_.after : reach_.before;
  for (const auto& block : witnesses_) {
    if (!block[in] || block[out]) continue;
    bool valid = true;
    for (const BitRows* rows : {&apart_, &beyond}) {
      const NodeIndex row = rows == &apart_ ? in : out;
      detail::for_each_bit(rows->row(row), nullptr, rows->words(),
                           [&](NodeIndex v) { valid = valid && !block[v]; });
    }
    if (valid) return true;
  }
  return false;
}

// Together when no affordable block has `in` without its neighbour `out`.
bool Round::cut_pair(BlockCut* cut, NodeIndex in, NodeIndex out) {
  if (apart_.test(in, out) || witnessed(in, out)) return false;
  std::vector<std::uint8_t> outside(graph_.size());
  exclude(in, &outside);
  const BitRows& beyond = reach_.after.test(in, out) ? reach_.after : reach_.before;
  detail::for_each_bit(beyond.row(out), nullptr, beyond.words(), [&](NodeIndex v) { outside[v] = 1; });
  outside[out] = 1;
  if (cut->cheapest(in, outside, limit_) > limit_) {
    together.emplace_back(in, out);
    return true;
  }
  if (witnesses_.size() < 64) {
    witnesses_.push_back(cut->block());
  } else {
    witnesses_[(in * 31 + out) % 64] = cut->block();
  }
  return false;
}

bool Round::cuts() {
  BlockCut cut(graph_, best_.work_factor, best_.io_factor);
  for (NodeIndex v = 0; v < graph_.size(); ++v) {
    if (stop_()) {
      stopped = true;
      return true;
    }
    std::vector<std::uint8_t> outside(graph_.size());
    exclude(v, &outside);
    if (cut.cheapest(v, outside, limit_) > limit_) return false;
    if (witnesses_.size() < 64) witnesses_.push_back(cut.block());
    for (const NodeIndex s : graph_.successors[v]) {
      if (!cut_pair(&cut, v, s)) cut_pair(&cut, s, v);
    }
  }
  return true;
}

}  // namespace

ForcedGroups force_groups(const TensorGraph& graph, const std::vector<Device>& devices, double limit,
                          const std::function<bool()>& stop) {
  ForcedGroups result;
  result.grouping = close_groups(graph, {});
  TensorGraph contracted = contract(graph, result.grouping);
  for (;;) {
    Round round(contracted, devices, limit, stop);
    if (!round.run()) {
      result.refuted = true;
      return result;
    }
    if (round.together.empty()) {
      result.complete = !round.stopped;
      return result;
    }
    const Grouping step = close_groups(contracted, round.together);
    result.grouping = compose(result.grouping, step);
    contracted = contract(contracted, step);
    if (round.stopped) {
      result.complete = false;
      return result;
    }
  }
}

}  // namespace neuroshard::placement
