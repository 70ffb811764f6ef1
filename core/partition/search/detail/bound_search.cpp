#include "core/partition/search/detail/bound_search.h"

#include <algorithm>
#include <cmath>

#include "core/partition/search/forced_groups.h"
#include "core/partition/search/ideal_search.h"
#include "core/partition/search/problem.h"
#include "core/partition/search/slicing.h"

namespace neuroshard::partition::detail {
namespace {

// A bound this close below an incumbent counts as a proof (half of the tolerance).
constexpr double coarse = 5e-5;

// Gives each block of kind i the next free device of that kind.
std::vector<std::uint32_t> devices_of_kinds(const std::vector<Device>& devices,
                                            const std::vector<std::uint32_t>& kinds) {
  const std::vector<DeviceKind> table = kinds_of(devices);
  std::vector<bool> taken(devices.size());
  std::vector<std::uint32_t> result;
  for (const std::uint32_t kind : kinds) {
    std::uint32_t d = 0;
    while (taken[d] || !(devices[d] == table[kind].device)) ++d;
    taken[d] = true;
    result.push_back(d);
  }
  return result;
}

double bottleneck_of(const TensorGraph& graph, const std::vector<Device>& devices,
                     const Candidate& candidate) {
  Problem problem;
  problem.graph = graph;
  problem.devices = devices;
  double most = 0;
  for (const BlockReport& block :
       report_blocks(problem, candidate.block_of, candidate.device_of_block, topological_order(graph))) {
    most = std::max(most, block.cost);
  }
  return most;
}

}  // namespace

double simple_bound(const TensorGraph& graph, const std::vector<Device>& devices) {
  double speed = 0;
  for (const Device& device : devices) speed += 1 / device.work_factor;
  const double largest =
      *std::max_element(graph.work.begin(), graph.work.end()) * best_of(devices).work_factor;
  return std::max(largest, graph.total_work() / speed);
}

bool BoundSearch::contract_at(double limit) {
  const ForcedGroups forced = force_groups(graph_, devices_, limit, branching(), stop_);
  if (forced.refuted) return false;
  grouping_ = forced.grouping;
  return true;
}

// A graph with one topological order: its slicings are all its partitions, so slicing is exact.
bool BoundSearch::slice_only_order(const TensorGraph& contracted, const Grouping& grouping, double limit,
                                   Verdict* verdict) {
  const std::vector<NodeIndex> order = topological_order(contracted);
  for (std::size_t i = 1; i < order.size(); ++i) {
    const auto& next = contracted.successors[order[i - 1]];
    if (!std::binary_search(next.begin(), next.end(), order[i])) return false;
  }
  if (kinds_of(devices_).size() > 1 || devices_[0].memory != unlimited) return false;
  Slicer slicer(contracted, devices_, stop_);
  const Slicing slicing = slicer.slice(order, limit * (1 + 1e-12));
  if (stop_ && stop_()) {  // the slicing is unfinished, so no bound follows from it
    *verdict = Verdict::Unknown;
    return true;
  }
  *verdict = slicing.bottleneck == unlimited ? Verdict::Refuted : Verdict::Found;
  if (*verdict == Verdict::Refuted) {
    lower_ = limit;
    certificate_ = "slicing of the only order";
    return true;
  }
  candidate_ = {std::vector<std::uint32_t>(order.size()), slicing.device, {}};
  for (std::size_t i = 0, b = 0; i < order.size(); ++i) {
    if (i == slicing.ends[b]) ++b;
    candidate_.block_of[order[i]] = static_cast<std::uint32_t>(b);
  }
  candidate_grouping_ = grouping;
  candidate_cost_ = slicing.bottleneck;
  only_order_ = true;
  return true;
}

BoundSearch::Verdict BoundSearch::search(const Grouping& grouping, double limit, std::uint64_t* steps) {
  const TensorGraph contracted = contract(graph_, grouping);
  Verdict exact = Verdict::Unknown;
  if (slice_only_order(contracted, grouping, limit, &exact)) return exact;
  IdealSearchLimits limits;
  limits.steps = *steps;
  limits.stop = stop_;
  IdealAnswer answer = search_ideals(contracted, devices_, limit, limits);
  *steps -= std::min(*steps, answer.steps);
  if (answer.verdict == IdealVerdict::Refuted) {
    lower_ = limit;
    certificate_ = "exact search over ideals";
    return Verdict::Refuted;
  }
  if (answer.verdict == IdealVerdict::Unknown) return Verdict::Unknown;
  candidate_ = {std::move(answer.block_of), devices_of_kinds(devices_, answer.kind_of_block), {}};
  candidate_grouping_ = grouping;
  candidate_cost_ = bottleneck_of(contracted, devices_, candidate_);
  return Verdict::Found;
}

BoundSearch::Verdict BoundSearch::decide(double limit, std::uint64_t* steps) {
  const ForcedGroups forced = force_groups(graph_, devices_, limit, branching(), stop_);
  if (forced.refuted) {
    lower_ = limit;
    certificate_ = "forced co-location";
    return Verdict::Refuted;
  }
  return search(forced.grouping, limit, steps);
}

void BoundSearch::run(double target, double lower) {
  if (target == unlimited || graph_.size() > max_forced_nodes) return;
  lower_ = lower;
  std::uint64_t steps = std::uint64_t{4'000'000} << std::min<std::uint32_t>(2 * round_, 10);
  std::uint64_t first = steps / 2;
  Verdict verdict = search(grouping_, target, &first);
  complete_ = verdict == Verdict::Refuted;
  if (complete_) return;
  double high = verdict == Verdict::Found ? candidate_cost_ : target;
  bool decided = verdict == Verdict::Found;
  // Where the last word was "found", the next value must be decided as well; after "unknown", the bound rises
  // as far as it can. A value just within the tolerance of a proof may be easier than the proof itself.
  for (int i = 0; i < 40 && !stop_() && steps > 0 && high > lower_ * (1 + 1e-9); ++i) {
    // The geometric mean with a bound of 0 would be 0 again.
    double middle = lower_ > 0 ? std::sqrt(lower_ * high) : high / 2;
    if (i == 0 && !decided) middle = std::max(middle, high * (1 - coarse));
    // Near the end, and where the best slicing of an only order leaves nothing below it, ask for the proof
    // itself; now and then bisect nevertheless, or many small improvements could follow each other.
    if (only_order_ || (high < lower_ * 1.002 && i % 4 != 3) || middle > high * (1 - 1e-6)) {
      middle = high * (1 - 1e-9);
    }
    std::uint64_t budget = decided ? steps : steps / 4;
    const std::uint64_t before = budget;
    verdict = decide(middle, &budget);
    steps -= std::min(steps, before - budget + 1000);
    if (verdict == Verdict::Found) {
      high = candidate_cost_;
      decided = true;
    } else if (verdict == Verdict::Unknown) {
      high = middle;
      decided = false;
    }
  }
  complete_ = decided && high <= lower_ * (1 + 2e-9);
}

}  // namespace neuroshard::partition::detail
