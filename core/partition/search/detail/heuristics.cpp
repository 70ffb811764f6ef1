#include "core/partition/search/detail/heuristics.h"

#include <algorithm>

#include "core/partition/search/annealing.h"
#include "core/partition/search/ideal_search.h"
#include "core/partition/search/orders.h"

namespace neuroshard::partition::detail {

Heuristics::Heuristics(const TensorGraph& graph, const std::vector<Device>& devices,
                       std::function<bool()> stop, std::uint64_t seed)
    : graph_(graph), devices_(devices), stop_(std::move(stop)), rng_(seed) {}

void Heuristics::set_incumbent(const Grouping& grouping, const std::vector<std::uint32_t>& block_of) {
  std::vector<double> sum(grouping.count), count(grouping.count);
  for (std::size_t v = 0; v < block_of.size(); ++v) {
    sum[grouping.group_of[v]] += block_of[v];
    count[grouping.group_of[v]] += 1;
  }
  std::vector<double> keys;
  for (NodeIndex g = 0; g < grouping.count; ++g) keys.push_back(-sum[g] / count[g]);
  hint_ = order_by_keys(graph_, keys);
}

Candidate Heuristics::to_candidate(const SlicedOrder& sliced) const {
  Candidate candidate;
  if (!sliced.found()) return candidate;
  candidate.block_of.resize(graph_.size());
  candidate.device_of_block = sliced.slicing.device;
  candidate.order = sliced.order;
  std::size_t at = 0;
  for (std::uint32_t b = 0; b < sliced.slicing.ends.size(); ++b) {
    for (; at < sliced.slicing.ends[b]; ++at) candidate.block_of[sliced.order[at]] = b;
  }
  return candidate;
}

Candidate Heuristics::first() {
  return to_candidate(best_slicing(graph_, devices_, simple_orders(graph_), unlimited, stop_));
}

// Anneals the blocks, then slices the order that they stand for: never worse than `start`.
SlicedOrder Heuristics::improve(const SlicedOrder& start, std::uint64_t moves) {
  Candidate candidate = to_candidate(start);
  // Devices that got nothing take part as empty blocks at the end.
  std::vector<bool> used(devices_.size());
  for (const std::uint32_t d : candidate.device_of_block) used[d] = true;
  for (std::uint32_t d = 0; d < devices_.size(); ++d) {
    if (!used[d]) candidate.device_of_block.push_back(d);
  }
  BlockAssignment blocks{candidate.block_of, {}};
  for (const std::uint32_t d : candidate.device_of_block) blocks.devices.push_back(devices_[d]);
  AnnealingPlan plan;
  plan.moves = moves;
  plan.stop = stop_;
  const BlockAssignment annealed = anneal(graph_, blocks, plan, &rng_);
  SlicedOrder result;
  result.order = order_of_blocks(graph_, annealed.block_of);
  Slicer slicer(graph_, devices_, stop_);
  result.slicing = slicer.slice(result.order, candidate.device_of_block, start.slicing.bottleneck);
  return result.slicing.bottleneck < start.slicing.bottleneck ? result : start;
}

bool Heuristics::narrow_search(double target, std::uint32_t round, Candidate* found) {
  if (kinds_of(devices_).size() != 1 || target == unlimited) return false;
  IdealSearchLimits limits;
  limits.stop = stop_;
  limits.layer = 30u << std::min<std::uint32_t>(round, 8);
  limits.steps_per_ideal = 1000u << std::min<std::uint32_t>(round, 8);
  limits.steps = std::uint64_t{300'000} << std::min<std::uint32_t>(2 * round, 8);
  IdealAnswer answer = search_ideals(graph_, devices_, target, limits);
  if (answer.verdict != IdealVerdict::Found) return false;
  found->block_of = std::move(answer.block_of);
  found->device_of_block.clear();
  for (std::uint32_t b = 0; b < answer.kind_of_block.size(); ++b) found->device_of_block.push_back(b);
  return true;
}

std::vector<Candidate> Heuristics::run(double target, std::uint32_t round) {
  std::vector<Candidate> found;
  std::vector<std::vector<NodeIndex>> orders = simple_orders(graph_);
  if (!hint_.empty()) orders.push_back(hint_);
  SlicedOrder best = best_slicing(graph_, devices_, orders, unlimited, stop_);
  const std::uint64_t moves = std::uint64_t{30'000} << std::min<std::uint32_t>(round, 8);
  Candidate narrow;
  if (narrow_search(target, round, &narrow)) {
    found.push_back(std::move(narrow));
    return found;
  }
  if (best.found()) best = improve(best, moves);
  if (!(best.slicing.bottleneck < target)) {
    GeneticPlan plan;
    plan.generations = 5u << std::min<std::uint32_t>(round, 6);
    plan.stop = stop_;
    if (best.found()) {
      orders.push_back(best.order);
      plan.cap = best.slicing.bottleneck * 1.5;
    }
    SlicedOrder evolved = evolve_orders(graph_, devices_, orders, plan, &rng_);
    if (evolved.found()) evolved = improve(evolved, moves);
    if (evolved.slicing.bottleneck < best.slicing.bottleneck) best = std::move(evolved);
  }
  found.push_back(to_candidate(best));
  return found;
}

}  // namespace neuroshard::partition::detail
