// The part of the model that this node holds, where its network's members hold parts: chosen by its owner, or by the network,
// which may have it move (part_moves.h). And the memory that it offers.
//
// Threads: the host's executor.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/chain/node.h"
#include "core/config/model_part.h"
#include "core/engine/round_trainer.h"
#include "core/node/snapshot.h"
#include "core/runtime/chain_report.h"
#include "core/runtime/part_moves.h"

namespace neuroshard::runtime {

// FLOP of a token, by part; empty: every member holds the whole model.
std::vector<double> part_work(const config::ConsensusPart& network);

class OwnModelPart {
 public:
  OwnModelPart(const config::DataDirectory& directory, storage::FileEnv& files, const net::NodeId& self);

  // That the node starts with. Nothing: every member holds the whole model, or the settings name none of the parts.
  const std::optional<config::ModelPart>& first() const { return first_; }
  bool follows_plan() const { return moves_.has_value(); }
  // That the model is of. Nothing: see first(), or no model was made yet.
  const std::optional<std::uint32_t>& held() const { return held_; }

  // Of a model that is ready: whether it is of the same part as the one before.
  bool is_held(const engine::RoundFacts& facts) const { return held_ == part_of(facts); }
  void take(const engine::RoundFacts& facts);
  // The user's limit from now on; 0: none. A node offers less at once, although it has the memory until it starts again. It can
  // offer more only after a new start, when its memory is planned anew.
  void limit_memory(std::uint64_t bytes) { user_limit_ = bytes; }
  // Where the network's model grows with its members, and the limit is higher than at the start.
  bool has_more_to_offer() const;
  // The network's next larger model has room in this node's memory.
  bool larger_fits() const { return !too_large_ || *too_large_ > size_ + 1; }
  // Whole 500 MB. Nothing: no model was made yet, so nobody knows.
  std::optional<std::uint32_t> offered_tiers() const;
  // speed: of this node's training, millions of FLOP/s; 0: not known yet.
  void measured(std::uint32_t speed) { speed_ = speed; }
  // Tells the chain's node and the training what the network wants, the network what the node offers, and people both.
  void follow_plan(const ChainMoment& now, chain::ChainNode& node, engine::RoundTrainer& trainer,
                   node::PartView* view);

 private:
  // The rows that the network should know this node as a holder of.
  std::optional<chain::RowSet> wanted_rows(const ChainMoment& now, engine::RoundTrainer& trainer,
                                           node::PartView* view);
  std::optional<std::uint32_t> part_of(const engine::RoundFacts& facts) const;
  std::optional<config::ModelPart> first_;
  std::optional<PartMoves> moves_;  // nothing: the owner chose
  std::optional<std::uint32_t> held_;
  std::vector<bool> fitting_;                        // by part: the memory plan has room for it
  std::uint64_t memory_limit_ = 0, user_limit_ = 0;  // bytes
  std::uint64_t first_limit_ = 0;                    // the user's when the node started
  bool model_grows_ = false;
  std::uint32_t speed_ = 0;
  std::optional<std::uint32_t> next_needs_;  // tiers that the next larger model needs of each, by the profile
  std::uint64_t size_ = 0;                   // of the model
  std::optional<std::uint32_t> too_large_;   // engine::first_too_large()
};

}  // namespace neuroshard::runtime
