// How long an operation takes on a machine, from what it computes and what it moves: the roofline model
// (Williams, Waterman, Patterson 2009), with a constant for starting an operation.
//
//   time = max(flops / F, bytes / B) + launch
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/partition/graph/graph.h"

namespace neuroshard::partition {

// Measured or given; all of one peer of speed 1.
struct MachineModel {
  double flops = 0;             // floating-point operations per second of large matrix products, > 0
  double memory_bandwidth = 0;  // bytes per second, > 0
  double launch = 0;            // seconds to start one operation
};

// Of one node for one request. A multiplication with its addition counts as two operations.
struct OperationCost {
  double flops = 0;
  double bytes = 0;  // inputs and parameters read, outputs written; 0 for views
};

double seconds_of(const MachineModel& machine, const OperationCost& cost);

// The result of an importer: a graph whose work is still 0, and the costs of its nodes.
struct CostedGraph {
  ComputationGraph graph;
  std::vector<OperationCost> costs;  // per node

  OperationCost total() const;
};

// The graph with its work on the machine, in milliseconds; the convention gains the machine's figures.
// InvalidArgument when the machine's numbers make no sense, or the graph does not satisfy validate().
Expected<ComputationGraph> with_work(CostedGraph costed, const MachineModel& machine);

}  // namespace neuroshard::partition
