// Is there a valid block within a limit? Minimum cuts, with branching on what makes the cut's set no block.
#pragma once

#include <functional>

#include "core/partition/search/detail/block_cut.h"
#include "core/partition/search/detail/reachability.h"

namespace neuroshard::partition::detail {

// Threads: one. References outlive the object.
class AffordableBlock {
 public:
  // `apart`: pairs that never share a block, symmetric. `branching`: cuts per question, at least 1.
  AffordableBlock(const TensorGraph& graph, double work_factor, double io_factor, double limit,
                  const Reachability& reach, const BitRows& apart, std::uint32_t branching);

  // False: no block with `in` costs at most the limit. True: there may be one.
  bool with(NodeIndex in) { return ask({in}, none); }
  bool with_both(NodeIndex a, NodeIndex b) { return ask({a, b}, none); }
  // A block with `in` and without its neighbour `out`, and so without anything beyond `out`.
  bool with_but_without(NodeIndex in, NodeIndex out) { return ask({in}, out); }

 private:
  using Members = std::vector<std::uint8_t>;
  static constexpr NodeIndex none = ~NodeIndex{0};

  bool ask(std::vector<NodeIndex> inside, NodeIndex without);
  bool explore(const std::vector<NodeIndex>& inside, const Members& outside);
  bool split_pair(const Members& block, const std::vector<NodeIndex>& inside, const Members& outside,
                  bool* answer);
  bool close_path(const Members& block, const std::vector<NodeIndex>& inside, const Members& outside,
                  bool* answer);
  bool add_inside(NodeIndex v, std::vector<NodeIndex>* inside, Members* outside) const;
  bool known(const std::vector<NodeIndex>& inside, NodeIndex without) const;

  BlockCut cut_;
  const std::size_t nodes_;
  const double limit_;
  const Reachability& reach_;
  const BitRows& apart_;
  const std::uint32_t branching_;
  std::uint32_t left_ = 0;         // cuts of this question
  std::vector<Members> examples_;  // valid affordable blocks
  std::size_t next_example_ = 0;
};

}  // namespace neuroshard::partition::detail
