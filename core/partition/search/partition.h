// Max-throughput partitioning: at most k blocks of a computation graph, the slowest as fast as possible, and
// a certified lower bound of what any partition can reach.
//
//   minimise max over blocks S of f(S) = io_in(S) + work(S) + overflow(S) + io_out(S)
// over partitions into convex blocks with an acyclic quotient, one peer per block (arXiv 2311.03703).
//
// How: an incumbent (best bottleneck B so far) from sliced orders; then, again and again, "is there anything
// below B?" on the graph that forced co-location at B leaves (forced_groups.h), answered by exact search over
// ideals (ideal_search.h) beside a heuristic search (annealing.h, genetic_orders.h) on the same contracted
// graph, with growing budgets. A better partition lowers B and contracts more; a refutation proves B. When
// time ends first, the best T that was refuted is the bound.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/partition/search/problem.h"

namespace neuroshard::partition {

// Relative gap up to which a partition is called optimal.
inline constexpr double proof_tolerance = 1e-4;

struct PartitionOptions {
  std::uint64_t seed = 1;
  // Soft: the answer comes shortly after. Zero or less: no time limit.
  Duration time_limit = std::chrono::seconds(8);
  // Rounds of search after which an unproved answer is returned. The result is a pure function of
  // (problem, seed, rounds) when neither the time limit nor cancel ended the search.
  std::uint32_t rounds = 12;
};

struct PartitionResult {
  std::vector<BlockReport> blocks;  // in pipeline order, none empty
  double bottleneck = 0;            // largest cost of a block, in the graph's unit
  double lower_bound = 0;           // certified: no partition has a smaller bottleneck; ≤ bottleneck
  double simple_bound = 0;          // max(largest node, all work / all speed), for comparison
  std::string certificate;          // what proved the bound
  bool interrupted = false;         // time or cancellation ended the search
  std::uint32_t rounds = 0;

  double gap() const {
    return lower_bound > 0 ? bottleneck / lower_bound - 1 : (bottleneck > 0 ? unlimited : 0);
  }
  bool proved() const { return gap() <= proof_tolerance; }
};

// Uses the calling thread and one more while it runs.
// Errors: NotFound when no partition satisfies the memory limits (the message says whether that is proved);
// Cancelled only when cancel came before any partition was found.
Expected<PartitionResult> find_partition(const Problem& problem, const PartitionOptions& options,
                                         const Clock& clock, const CancelToken& cancel);

}  // namespace neuroshard::partition
