// The cheapest block under membership constraints, by a minimum cut.
//
// work(S) + io_in(S) + io_out(S) is a sum of a modular function and two directed hyperedge cuts, so it is
// submodular and its minimum over sets S that contain `inside` and avoid `outside` is a minimum s–t cut:
//   S = source side;  v → sink with capacity work(v);
//   a tensor that leaves S:  producer → a with its cost, a → every consumer without limit;
//   a tensor that enters S:  every consumer → b without limit, b → producer with its cost.
// Sets that are no valid blocks (not convex, too much memory) are allowed, so the value is a lower bound on
// the cost of every valid block under the same constraints.
#pragma once

#include <cstdint>
#include <vector>

#include "core/partition/graph/tensor_graph.h"

namespace neuroshard::partition::detail {

// Threads: one.
class BlockCut {
 public:
  BlockCut(const TensorGraph& graph, double work_factor, double io_factor);

  // The least cost, or some value > limit as soon as it is known to exceed it. `outside` has one byte per
  // node; nonzero: not in the block. When the value is ≤ limit, block() holds a set that attains it.
  double cheapest(const std::vector<NodeIndex>& inside, const std::vector<std::uint8_t>& outside,
                  double limit);
  // One byte per node: of the last call.
  const std::vector<std::uint8_t>& block() const { return block_; }

 private:
  struct Arc {
    std::uint32_t to;
    double capacity;
  };

  void add_arc(std::uint32_t from, std::uint32_t to, double capacity);
  bool layer(const std::vector<NodeIndex>& sources, const std::vector<std::uint8_t>& outside);
  double push(std::uint32_t from, double most, const std::vector<std::uint8_t>& outside);

  std::size_t nodes_;
  std::vector<Arc> arcs_;  // arc i and its reverse i ^ 1
  std::vector<double> initial_;
  std::vector<double> sink_initial_, sink_;  // capacity left from a node to the sink
  std::vector<std::vector<std::uint32_t>> out_;
  std::vector<std::uint32_t> level_, at_, queue_;
  std::vector<std::uint32_t> used_, drained_;  // arcs and vertices that carry flow
  std::vector<std::uint8_t> block_;
};

}  // namespace neuroshard::partition::detail
