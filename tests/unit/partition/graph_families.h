// Generated computation graphs for tests and measurements. A pure function of its arguments.
//
// Node work is log-normal around 1 with the given sigma. The one output of a node costs io_ratio · work on
// average at unit bandwidth (output_bytes are times, bandwidth 1).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/partition/graph/graph.h"

namespace neuroshard::test {

struct Family {
  std::string name;
  partition::ComputationGraph graph;
  bool is_layered_model = false;  // chains, transformer layers, mixture-of-experts layers
};

partition::ComputationGraph chain(std::uint32_t n, double sigma, double io_ratio, std::uint64_t seed);
// Pairs of parallel nodes between joints.
partition::ComputationGraph diamond_ladder(std::uint32_t steps, double sigma, double io_ratio,
                                           std::uint64_t seed);
// Attention and feed-forward nodes with their residual sums.
partition::ComputationGraph transformer_layers(std::uint32_t layers, double sigma, double io_ratio,
                                               std::uint64_t seed);
// Query, key, value, heads, projections, norms, residual sums: 16 nodes per layer.
partition::ComputationGraph transformer_operators(std::uint32_t layers, double sigma, double io_ratio,
                                                  std::uint64_t seed);
// Attention, router, eight experts, sum.
partition::ComputationGraph mixture_layers(std::uint32_t layers, double sigma, double io_ratio,
                                           std::uint64_t seed);
// Modules of four branches of different lengths.
partition::ComputationGraph inception(std::uint32_t modules, double sigma, double io_ratio,
                                      std::uint64_t seed);
// Down, across, up, with skips from each level to its mirror image.
partition::ComputationGraph u_net(std::uint32_t levels, double sigma, double io_ratio, std::uint64_t seed);
// Layers of about sqrt(n) nodes that read one to three nodes of earlier layers.
partition::ComputationGraph layered_random(std::uint32_t n, double sigma, double io_ratio,
                                           std::uint64_t seed);
// Any acyclic graph: each earlier node is an input with the given probability.
partition::ComputationGraph random_graph(std::uint32_t n, double density, double io_ratio,
                                         std::uint64_t seed);

// Every family at several sizes, sigmas and ratios.
std::vector<Family> all_families();

}  // namespace neuroshard::test
