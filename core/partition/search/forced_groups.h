// Forced co-location: which nodes share a block in every partition whose bottleneck is at most T.
//
// Each rule is a consequence of "every block costs at most T"; costs are those of the best device in each
// respect, so the rules hold for every assignment of blocks to devices.
//  1. Cut rule. Let g → h be neighbours. If the cheapest set that contains g and neither h nor anything that
//     cannot be in g's block (rule 2) costs more than T (a minimum cut, detail/block_cut.h), every block
//     with g contains h. The same with the roles exchanged. This contains the rule "work of g's group + its
//     output > T" and charges all the traffic that such a block cannot avoid.
//     The minimum is over all sets. When the set found is no block (a path leaves it and comes back, or two
//     of its nodes can't be together), branching follows: the node x that it leaves out of a path joins, or
//     nothing after x is in the block, or nothing before x; of two incompatible nodes one goes. Some branch
//     contains every valid block, so if all branches exceed T, so do all blocks. `branching` bounds the cuts
//     per test; a test that ends early is inconclusive.
//  2. Incompatible pairs. A block is convex, so one with g and h contains every path between them; when the
//     work (or parameters) on those paths exceed T (or the memory), g and h are never together. A block
//     with g but not its successor h contains nothing that comes after h.
//  3. Window rule (equal devices). The nodes before g need at least ⌈work/T⌉ blocks, those after g as well:
//     g's block has an earliest and a latest index. Pairs whose windows do not meet are incompatible; pairs
//     whose windows are one same index are together.
//  4. Slack rule. All blocks together cost work + the price of every cut tensor, at most the capacity k·T. A
//     tensor between incompatible nodes is cut for certain. One whose price (once out, at least once in)
//     exceeds what is left cannot be cut: producer and consumers are together.
// Groups are closed under cycles of the quotient (an acyclic quotient allows none) and the rules repeat on
// the contracted graph until nothing changes. T is refuted when a node's cheapest block costs more than T,
// when its window is empty, or when the slack is negative: then T is a lower bound of the optimum.
#pragma once

#include <functional>
#include <vector>

#include "core/partition/graph/devices.h"
#include "core/partition/graph/tensor_graph.h"

namespace neuroshard::partition {

// Larger graphs are returned as they are: pairs of nodes take n² bits, and rounds more than seconds.
inline constexpr std::size_t max_forced_nodes = 5000;

struct ForcedGroups {
  bool refuted = false;
  bool complete = true;  // false: stopped early; the groups found until then are still forced
  Grouping grouping;     // of the graph's nodes; meaningless when refuted
};

// `stop` is asked between cuts.
ForcedGroups force_groups(const TensorGraph& graph, const std::vector<Device>& devices, double limit,
                          std::uint32_t branching, const std::function<bool()>& stop);

}  // namespace neuroshard::partition
