// What people and status reports see of a chain and its rounds, from the state that a node has at a moment.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/chain/node.h"
#include "core/node/snapshot.h"
#include "core/rounds/joint_anchors.h"
#include "core/rounds/training_rounds.h"
#include "core/runtime/rounds_status.h"

namespace neuroshard::runtime {

// The state of a node of a chain at one moment.
struct ChainMoment {
  chain::ChainView chain;
  chain::RegistryPtr registry;  // of the newest block; null: this node has no history yet
  rounds::TrainingView training;
  bool resting = false;  // the training stands still for the rounds
};

class ChainReport {
 public:
  // row_values: values of each row.
  explicit ChainReport(const std::vector<std::uint64_t>& row_values);

  // A new block, or another history's newest. A row's joint anchor is the one of its newest change.
  void on_tip(const chain::ChainTip& tip);
  // This node holds the anchor of a row's round. what: the row's name for people, with the round.
  void on_anchor(const std::string& what, const rounds::TrainingView& training);
  // Since the call before.
  bool was_fetched() const { return was_fetched_; }

  void fill(node::RoundsView& view, const ChainMoment& now);
  RoundsSeen seen(const ChainMoment& now) const;

 private:
  rounds::JointAnchors anchors_;           // certified
  std::map<std::uint64_t, Hash256> held_;  // joint anchors of rounds that this node held
  std::uint64_t values_ = 0;
  std::uint64_t fetched_ = 0, left_out_ = 0;
  bool was_fetched_ = false;
  std::string left_out_reason_;
};

}  // namespace neuroshard::runtime
