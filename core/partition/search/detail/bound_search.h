// Lower bounds of the bottleneck, and what the exact search finds on the way.
#pragma once

#include <algorithm>
#include <functional>

#include "core/partition/graph/devices.h"
#include "core/partition/graph/tensor_graph.h"
#include "core/partition/search/detail/candidate.h"

namespace neuroshard::partition::detail {

// The larger of: the cheapest time of the largest node; all work over all speeds.
// Proof: the block with the largest node does at least that; blocks on devices of speed s_p have at most
// B·s_p work in a partition with bottleneck B, so W ≤ B·Σ s_p.
double simple_bound(const TensorGraph& graph, const std::vector<Device>& devices);

// One round of proving. Threads: one, any.
class BoundSearch {
 public:
  BoundSearch(const TensorGraph& graph, const std::vector<Device>& devices, std::uint32_t round,
              std::function<bool()> stop)
      : graph_(graph), devices_(devices), round_(round), stop_(std::move(stop)) {}

  // Forced co-location at `limit`, kept for run(). False: refuted, limit is a lower bound.
  bool contract_at(double limit);
  const Grouping& grouping() const { return grouping_; }

  // Decides `target` (unlimited: nothing to decide yet) with a budget that grows with the round. When there
  // is something below it, or it can't be decided, goes on between `lower` and what was found by bisection.
  void run(double target, double lower);

  double lower() const { return lower_; }
  // The question is answered: nothing below the target, or nothing below the candidate.
  bool complete() const { return complete_; }
  const char* certificate() const { return certificate_; }
  // The best partition found on the way, over candidate_grouping(); maybe empty.
  const Candidate& candidate() const { return candidate_; }
  const Grouping& candidate_grouping() const { return candidate_grouping_; }

 private:
  enum class Verdict { Refuted, Found, Unknown };
  std::uint32_t branching() const { return round_ == 0 ? 1 : 4u << std::min<std::uint32_t>(round_, 6); }
  Verdict decide(double limit, std::uint64_t* steps);
  bool slice_only_order(const TensorGraph& contracted, const Grouping& grouping, double limit,
                        Verdict* verdict);
  Verdict search(const Grouping& grouping, double limit, std::uint64_t* steps);

  const TensorGraph& graph_;
  const std::vector<Device>& devices_;
  const std::uint32_t round_;  // budgets grow with it
  std::function<bool()> stop_;
  Grouping grouping_;
  double lower_ = 0;
  bool complete_ = false;
  const char* certificate_ = "";
  Candidate candidate_;
  double candidate_cost_ = 0;  // in the bound's graph: true where memory does not bind
  Grouping candidate_grouping_;
  bool only_order_ = false;  // the candidate is the best slicing of the graph's only order
};

}  // namespace neuroshard::partition::detail
