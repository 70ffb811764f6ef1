// Biased random-key genetic algorithm over topological orders (Gonçalves, Resende 2011; for graph orders
// REGAL, arXiv 1905.02494).
//
// An individual is one key in [0, 1) per node, decoded by Kahn's algorithm with priorities and then sliced;
// its fitness is the bottleneck. With unequal devices it also carries one key per device, whose order is the
// order of the pipeline. Each generation keeps the elite, adds mutants, and fills up with children that take
// each key from an elite parent with a bias.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/rng.h"
#include "core/partition/search/slicing.h"

namespace neuroshard::partition {

struct SlicedOrder {
  std::vector<NodeIndex> order;
  Slicing slicing;

  bool found() const { return slicing.bottleneck != unlimited; }
};

struct GeneticPlan {
  std::uint32_t population = 40;
  std::uint32_t generations = 50;
  double elite = 0.25, mutants = 0.15, bias = 0.7;
  double cap = unlimited;  // slicings at or above it count as failed
  std::function<bool()> stop;
};

// The best individual over all generations; `seeds` join the first one.
SlicedOrder evolve_orders(const TensorGraph& graph, const std::vector<Device>& devices,
                          const std::vector<std::vector<NodeIndex>>& seeds, const GeneticPlan& plan,
                          Rng* rng);

// The best of some orders, with the devices as they stand, fastest first and fastest last.
SlicedOrder best_slicing(const TensorGraph& graph, const std::vector<Device>& devices,
                         const std::vector<std::vector<NodeIndex>>& orders, double cap,
                         const std::function<bool()>& stop);

}  // namespace neuroshard::partition
