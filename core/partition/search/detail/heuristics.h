// The heuristic half of a round: sliced orders, annealing, genetic search, and a narrow search over ideals.
#pragma once

#include <functional>
#include <vector>

#include "core/partition/search/detail/candidate.h"
#include "core/partition/search/genetic_orders.h"

namespace neuroshard::partition::detail {

// Threads: one, any.
class Heuristics {
 public:
  Heuristics(const TensorGraph& graph, const std::vector<Device>& devices, std::function<bool()> stop,
             std::uint64_t seed);

  // The incumbent as a hint: a partition of finer nodes, which may cut this graph's nodes apart.
  void set_incumbent(const Grouping& grouping, const std::vector<std::uint32_t>& block_of);

  // The best slicing of the simple orders.
  Candidate first();
  // Partitions with a bottleneck below `target` if it finds any; better and slower in later rounds.
  std::vector<Candidate> run(double target, std::uint32_t round);

 private:
  Candidate to_candidate(const SlicedOrder& sliced) const;
  SlicedOrder improve(const SlicedOrder& start, std::uint64_t moves);
  bool narrow_search(double target, std::uint32_t round, Candidate* found);

  const TensorGraph& graph_;
  const std::vector<Device>& devices_;
  std::function<bool()> stop_;
  Rng rng_;
  std::vector<NodeIndex> hint_;
};

}  // namespace neuroshard::partition::detail
