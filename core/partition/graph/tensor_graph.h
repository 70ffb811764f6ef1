// The form that the algorithms work on: nodes with work and parameters, and tensors with one producer and any
// number of consumers. Contracting nodes gives a graph of the same kind, where a node may produce several
// tensors; the input graph is the case of one tensor per node.
#pragma once

#include <cstdint>
#include <vector>

#include "core/partition/graph/graph.h"

namespace neuroshard::partition {

using NodeIndex = std::uint32_t;
using TensorIndex = std::uint32_t;

struct Tensor {
  NodeIndex producer = 0;
  double cost = 0;                   // time of one transfer at io factor 1
  double bytes = 0;                  // in memory
  std::vector<NodeIndex> consumers;  // without the producer, sorted, each once; not empty
};

struct TensorGraph {
  std::vector<double> work;
  std::vector<double> params;  // bytes
  std::vector<double>
      scratch;  // bytes that a node needs while it runs, beside its tensors: inside a contraction
  std::vector<Tensor> tensors;
  std::vector<std::vector<TensorIndex>> produced, consumed;      // per node
  std::vector<std::vector<NodeIndex>> successors, predecessors;  // per node, each once, sorted

  std::size_t size() const { return work.size(); }
  double total_work() const;
  double total_params() const;
};

// Fills produced, consumed, successors and predecessors from tensors.
void index_tensors(TensorGraph* graph);

// Positions in topological order; smallest index first among the ready. The graph has no cycle.
std::vector<NodeIndex> topological_order(const TensorGraph& graph);

// Labels 0…count−1 of a partition of the nodes.
struct Grouping {
  std::vector<NodeIndex> group_of;
  NodeIndex count = 0;
};

// The finest grouping with an acyclic quotient in which every pair shares a group: union-find, then strongly
// connected components of the quotient. Groups are numbered topologically.
Grouping close_groups(const TensorGraph& graph, const std::vector<std::pair<NodeIndex, NodeIndex>>& together);

// One node per group. Tensors inside a group vanish; those with the same producer and the same consumers
// become one. Scratch of a group: the largest sum of inner tensors alive when its members run in topological
// order.
TensorGraph contract(const TensorGraph& graph, const Grouping& grouping);

// inner: nodes → middle, outer: middle → groups.
Grouping compose(const Grouping& inner, const Grouping& outer);

}  // namespace neuroshard::partition
