// A view of a chain and its rounds for people and status reports, from the state that a node has at a moment.
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
  chain::VotersMode voters = chain::VotersMode::Invited;
  net::NodeId self{};
  MonotonicTime at{};
  WallTime wall{};
};

class ChainReport {
 public:
  // row_values: values of each row.
  explicit ChainReport(const std::vector<std::uint64_t>& row_values);

  // A new block, or another history's newest. A row's joint anchor is the one of its newest change.
  void on_tip(const chain::ChainTip& tip);
  // This node holds the anchor of a row's round. what: the row's name for people, with the round.
  void on_anchor(const std::string& what, const rounds::TrainingView& training);

  void fill(node::RoundsView& view, const ChainMoment& now);
  RoundsSeen seen(const ChainMoment& now) const;

 private:
  void watch(const ChainMoment& now);
  static void fill_checks(node::PartView* part, const ChainMoment& now);
  void fill_chain(node::ChainView& view, const ChainMoment& now) const;
  rounds::JointAnchors anchors_;           // certified
  std::map<std::uint64_t, Hash256> held_;  // joint anchors of rounds that this node held
  std::uint64_t values_ = 0;
  std::uint64_t left_out_ = 0;
  std::string left_out_reason_;
  std::optional<MonotonicTime> person_needed_since_, voucher_needed_since_;
};

}  // namespace neuroshard::runtime
