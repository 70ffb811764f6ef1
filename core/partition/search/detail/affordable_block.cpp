#include "core/partition/search/detail/affordable_block.h"

#include <algorithm>

namespace neuroshard::partition::detail {
namespace {

constexpr std::size_t most_examples = 64;

// Marks the bits of a row; false when one of `inside` is among them.
bool exclude_row(const std::uint64_t* row, std::size_t words, const std::vector<NodeIndex>& inside,
                 std::vector<std::uint8_t>* outside) {
  for_each_bit(row, nullptr, words, [&](NodeIndex v) { (*outside)[v] = 1; });
  return std::none_of(inside.begin(), inside.end(), [&](NodeIndex v) { return (*outside)[v] != 0; });
}

}  // namespace

AffordableBlock::AffordableBlock(const TensorGraph& graph, double work_factor, double io_factor, double limit,
                                 const Reachability& reach, const BitRows& apart, std::uint32_t branching)
    : cut_(graph, work_factor, io_factor),
      nodes_(graph.size()),
      limit_(limit),
      reach_(reach),
      apart_(apart),
      branching_(std::max<std::uint32_t>(1, branching)) {}

bool AffordableBlock::known(const std::vector<NodeIndex>& inside, NodeIndex without) const {
  return std::any_of(examples_.begin(), examples_.end(), [&](const Members& block) {
    return (without == none || !block[without]) &&
           std::all_of(inside.begin(), inside.end(), [&](NodeIndex v) { return block[v] != 0; });
  });
}

bool AffordableBlock::add_inside(NodeIndex v, std::vector<NodeIndex>* inside, Members* outside) const {
  if ((*outside)[v]) return false;
  inside->push_back(v);
  return exclude_row(apart_.row(v), apart_.words(), *inside, outside);
}

bool AffordableBlock::ask(std::vector<NodeIndex> inside, NodeIndex without) {
  if (known(inside, without)) return true;
  Members outside(nodes_);
  std::vector<NodeIndex> members;
  for (const NodeIndex v : inside) {
    if (!add_inside(v, &members, &outside)) return false;
  }
  if (without != none) {
    const BitRows& beyond = reach_.after.test(inside[0], without) ? reach_.after : reach_.before;
    outside[without] = 1;
    if (!exclude_row(beyond.row(without), beyond.words(), members, &outside)) return false;
  }
  left_ = branching_;
  return explore(members, outside);
}

bool AffordableBlock::explore(const std::vector<NodeIndex>& inside, const Members& outside) {
  if (left_ == 0) return true;
  --left_;
  if (cut_.cheapest(inside, outside, limit_) > limit_) return false;
  const Members block = cut_.block();
  bool answer = true;
  if (split_pair(block, inside, outside, &answer) || close_path(block, inside, outside, &answer))
    return answer;
  if (examples_.size() < most_examples) {
    examples_.push_back(block);
  } else {
    examples_[next_example_++ % most_examples] = block;
  }
  return true;
}

// Branches on two nodes of the set that can't be together; false when there are none.
bool AffordableBlock::split_pair(const Members& block, const std::vector<NodeIndex>& inside,
                                 const Members& outside, bool* answer) {
  for (NodeIndex v = 0; v < nodes_; ++v) {
    if (!block[v]) continue;
    NodeIndex other = none;
    for_each_bit(apart_.row(v), nullptr, apart_.words(), [&](NodeIndex w) {
      if (other == none && block[w]) other = w;
    });
    if (other == none) continue;
    *answer = false;
    for (const NodeIndex gone : {v, other}) {
      if (*answer || std::find(inside.begin(), inside.end(), gone) != inside.end()) continue;
      Members narrower = outside;
      narrower[gone] = 1;
      *answer = explore(inside, narrower);
    }
    return true;
  }
  return false;
}

// Branches on a node that a path of the set leaves out; false when the set is convex.
bool AffordableBlock::close_path(const Members& block, const std::vector<NodeIndex>& inside,
                                 const Members& outside, bool* answer) {
  for (NodeIndex x = 0; x < nodes_; ++x) {
    if (block[x]) continue;
    bool from = false, to = false;
    for_each_bit(reach_.before.row(x), nullptr, reach_.before.words(),
                 [&](NodeIndex v) { from = from || block[v]; });
    if (!from) continue;
    for_each_bit(reach_.after.row(x), nullptr, reach_.after.words(),
                 [&](NodeIndex v) { to = to || block[v]; });
    if (!to) continue;
    std::vector<NodeIndex> wider = inside;
    Members narrower = outside;
    *answer = add_inside(x, &wider, &narrower) && explore(wider, narrower);
    for (const BitRows* beyond : {&reach_.after, &reach_.before}) {
      if (*answer) break;
      narrower = outside;
      narrower[x] = 1;
      *answer = exclude_row(beyond->row(x), beyond->words(), inside, &narrower) && explore(inside, narrower);
    }
    return true;
  }
  return false;
}

}  // namespace neuroshard::partition::detail
