#include "core/partition/search/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>

#include "core/partition/search/detail/bound_search.h"
#include "core/partition/search/detail/heuristics.h"
#include "core/partition/search/detail/pair_runner.h"
#include "core/partition/search/orders.h"
#include "core/partition/search/reduction.h"

namespace neuroshard::partition {
namespace {

using detail::BoundSearch;
using detail::Candidate;
using detail::Heuristics;

// An optimum is looked for this far below the incumbent: far above the rounding of the sums.
constexpr double improvement = 1e-9;

class Partitioner {
 public:
  Partitioner(const Problem& problem, const PartitionOptions& options, const Clock& clock,
              const CancelToken& cancel)
      : problem_(problem),
        options_(options),
        clock_(clock),
        cancel_(cancel),
        started_(clock.monotonic_now()) {}

  Expected<PartitionResult> run();

 private:
  bool stop() const {
    if (cancel_.cancelled()) return true;
    return options_.time_limit.count() > 0 && clock_.monotonic_now() - started_ > options_.time_limit;
  }
  void prepare();
  void offer(const Candidate& candidate, const Grouping& grouping);
  void raise(double bound, const char* certificate);
  void round(std::uint32_t number);
  bool finished(std::uint32_t rounds) const;

  const Problem& problem_;
  const PartitionOptions& options_;
  const Clock& clock_;
  const CancelToken& cancel_;
  const MonotonicTime started_;
  detail::PairRunner threads_;

  std::vector<Device> devices_;
  Grouping search_grouping_, bound_grouping_;  // of the problem's nodes
  TensorGraph search_graph_, bound_graph_;

  std::vector<std::uint32_t> block_of_, device_of_block_;  // the incumbent, over the problem's nodes
  std::vector<NodeIndex> order_, node_order_;
  double upper_ = unlimited, lower_ = 0;
  std::string certificate_;
  std::uint64_t attempts_ = 0;
};

void Partitioner::prepare() {
  devices_ = problem_.devices;
  node_order_ = topological_order(problem_.graph);
  if (!problem_.memory_binds) {
    for (Device& device : devices_) device.memory = unlimited;
  }
  // Without limits, parameters are no reason to keep a node by itself.
  TensorGraph base = contract(problem_.graph, problem_.colocated);
  if (!problem_.memory_binds) base.params.assign(base.size(), 0);
  const Grouping reduced = reduce_dominated(base, problem_.devices, [this] { return stop(); });
  bound_grouping_ = compose(problem_.colocated, reduced);
  bound_graph_ = contract(problem_.graph, bound_grouping_);
  // Where memory binds, moving a node without work still moves its tensors: the search keeps the whole graph.
  search_grouping_ = problem_.memory_binds ? problem_.colocated : bound_grouping_;
  search_graph_ = contract(problem_.graph, search_grouping_);
}

// Takes over a partition of the groups when its true cost is below the incumbent's.
void Partitioner::offer(const Candidate& candidate, const Grouping& grouping) {
  if (candidate.block_of.empty()) return;
  std::vector<std::uint32_t> block_of;
  for (const NodeIndex group : grouping.group_of) block_of.push_back(candidate.block_of[group]);
  std::vector<NodeIndex> order = node_order_;
  if (problem_.memory_binds && !candidate.order.empty()) {
    std::vector<double> place(candidate.order.size()), keys;
    for (std::size_t i = 0; i < candidate.order.size(); ++i)
      place[candidate.order[i]] = -static_cast<double>(i);
    for (const NodeIndex group : grouping.group_of) keys.push_back(place[group]);
    order = order_by_keys(problem_.graph, keys);
  }
  double cost = 0;
  for (const BlockReport& block : report_blocks(problem_, block_of, candidate.device_of_block, order)) {
    cost = std::max(cost, block.cost);
  }
  if (!(cost < upper_)) return;
  upper_ = cost;
  block_of_ = std::move(block_of);
  device_of_block_ = candidate.device_of_block;
  order_ = std::move(order);
}

void Partitioner::raise(double bound, const char* certificate) {
  bound = std::min(bound, upper_);
  if (!(bound > lower_)) return;
  lower_ = bound;
  certificate_ = certificate;
}

bool Partitioner::finished(std::uint32_t rounds) const {
  if (upper_ == unlimited) return false;
  const double gap = lower_ > 0 ? upper_ / lower_ - 1 : (upper_ > 0 ? unlimited : 0);
  return gap <= 2 * improvement || (gap <= proof_tolerance && rounds >= 3);
}

void Partitioner::round(std::uint32_t number) {
  const auto stop_now = [this] { return stop(); };
  BoundSearch bounds(bound_graph_, devices_, number, stop_now);
  const double target = upper_ == unlimited ? unlimited : upper_ * (1 - improvement);
  Grouping search_grouping = search_grouping_;
  if (target != unlimited) {
    if (!bounds.contract_at(target)) {
      raise(target, "forced co-location");
      return;
    }
    if (!problem_.memory_binds) search_grouping = compose(bound_grouping_, bounds.grouping());
  }
  const TensorGraph search_graph = contract(problem_.graph, search_grouping);
  // A complete answer of the exact half ends the other: it can't find anything better. (Where memory binds,
  // what the exact half found may not fit.)
  std::atomic<bool> answered{false};
  Heuristics heuristics(
      search_graph, devices_, [&] { return answered.load() || stop(); },
      options_.seed * 1'000'003 + attempts_++);
  if (!block_of_.empty()) heuristics.set_incumbent(search_grouping, block_of_);

  std::vector<Candidate> found;
  const auto prove = [&] {
    bounds.run(target, lower_);
    if (bounds.complete() && !(problem_.memory_binds && !bounds.candidate().block_of.empty()))
      answered = true;
  };
  threads_.run(prove, [&] { found = heuristics.run(target, number); });
  raise(bounds.lower(), bounds.certificate());
  if (!bounds.candidate().block_of.empty()) {
    offer(bounds.candidate(), compose(bound_grouping_, bounds.candidate_grouping()));
  }
  if (answered) return;  // how far the other half came depends on the threads
  for (const Candidate& candidate : found) offer(candidate, search_grouping);
}

Expected<PartitionResult> Partitioner::run() {
  prepare();
  PartitionResult result;
  result.simple_bound = detail::simple_bound(bound_graph_, devices_);
  lower_ = result.simple_bound;
  certificate_ = "simple bound";
  Heuristics first(
      search_graph_, devices_, [this] { return stop(); }, options_.seed);
  offer(first.first(), search_grouping_);
  // A round that improved the partition is repeated with the same budget: it may be cheap now.
  while (result.rounds < options_.rounds && !finished(result.rounds) && !stop()) {
    const double before = upper_;
    round(result.rounds);
    if (!(upper_ < before * (1 - 1e-6))) ++result.rounds;
  }
  if (upper_ == unlimited) {
    if (cancel_.cancelled()) return make_error(ErrorCode::Cancelled, "stopped before a partition was found");
    if (stop()) {
      return make_error(ErrorCode::NotFound,
                        "no partition that fits the peers' memory was found in time; raise --time-limit, or "
                        "give more peers or more memory");
    }
    return make_error(
        ErrorCode::NotFound,
        fmt::format("no partition into at most {} blocks that fits the peers' memory was found; give more "
                    "peers, more memory, or allow streaming (--stream-bandwidth)",
                    problem_.devices.size()));
  }
  result.interrupted = !finished(3) && stop();
  result.blocks = report_blocks(problem_, block_of_, device_of_block_, order_);
  result.bottleneck = upper_;
  result.lower_bound = std::min(lower_, upper_);
  result.certificate = certificate_;
  return result;
}

}  // namespace

Expected<PartitionResult> find_partition(const Problem& problem, const PartitionOptions& options,
                                         const Clock& clock, const CancelToken& cancel) {
  return Partitioner(problem, options, clock, cancel).run();
}

}  // namespace neuroshard::partition
