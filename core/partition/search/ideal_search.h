// Exact decision "is there a partition with bottleneck ≤ T?" by search over ideals.
//
// The blocks before any point of the pipeline form an ideal (a set closed under inputs), so a partition is a
// chain of ideals, and the cost of the rest depends on the ideal alone. The search proceeds by the number of
// blocks: layer b holds the ideals that b blocks of cost ≤ T reach and fewer don't (with unequal devices: per
// multiset of device kinds used). T is refuted when the layers run empty before the whole graph is reached.
//
// These rules keep the layers small:
//  - Enumeration. A block over an ideal grows by nodes whose inputs are there, each taken or left out for
//    good. Work, received bytes, and bytes sent to nodes that were left out only grow, so a branch ends when
//    they exceed T.
//  - Fill. The devices left must be able to do the work left: a block that idles (or transfers) too much
//    is cut.
//  - Absorption. Call a node light when sending its outputs costs no more than its work, on every device. If
//    J and J ∪ {x} are both reached with the same devices and x is light, J is not needed: in a partition that
//    continues from J, take x out of its block. That block loses work(x) and may have to receive x's outputs,
//    which cost no more; no other block changes. The same holds for J ⊂ J' when all of J' \ J are light, by
//    taking out J' \ J, block by block: per block the outputs received cost at most the work taken out.
//  - Equal ideals are kept once (hash).
// With a limit on layers the widest layers are thinned out (fullest ideals first). Then a chain that is found
// is still a valid one, but an empty layer is no proof.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/partition/graph/devices.h"
#include "core/partition/graph/tensor_graph.h"

namespace neuroshard::partition {

struct IdealSearchLimits {
  std::uint64_t steps = 2'000'000;  // nodes of the enumeration trees, all together
  std::uint32_t layer = 200'000;    // ideals kept per layer
  std::uint64_t steps_per_ideal = ~std::uint64_t{0};
  std::function<bool()> stop;  // asked now and then
};

enum class IdealVerdict { Refuted, Found, Unknown };

struct IdealAnswer {
  IdealVerdict verdict = IdealVerdict::Unknown;
  // Found: the block of each node, counted from 0 in pipeline order, and the device kind of each block.
  std::vector<std::uint32_t> block_of;
  std::vector<std::uint32_t> kind_of_block;
  std::uint64_t steps = 0;
  std::uint64_t ideals = 0;
};

// Activations count as 0 bytes, less than the true peak: where memory binds, Found must be checked; Refuted
// stands.
IdealAnswer search_ideals(const TensorGraph& graph, const std::vector<Device>& devices, double limit,
                          const IdealSearchLimits& limits);

}  // namespace neuroshard::partition
