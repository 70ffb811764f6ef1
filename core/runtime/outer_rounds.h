// The outer rounds of a running node, of either kind: rounds on a chain (chain_rounds.h) where the network's
// profile says who votes, else rounds with a history per fragment (rounds_service.h).
//
// Threads: the owner's, which is not the host's executor, unless a comment says otherwise.
// Errors: none; problems are in the view and in the log.
#pragma once

#include <functional>
#include <memory>

#include "core/config/data_directory.h"
#include "core/engine/round_trainer.h"
#include "core/node/snapshot.h"
#include "core/runtime/interpositions.h"
#include "core/runtime/peer_host.h"
#include "core/runtime/presence.h"
#include "core/runtime/rounds_status.h"

namespace neuroshard::runtime {

class OuterRounds : public Presence {
 public:
  // Null when the network has no outer rounds. The host outlives it.
  static std::unique_ptr<OuterRounds> make(PeerHost& host, const config::DataDirectory& directory,
                                           const RuntimeServices& services, Interpositions interpositions,
                                           ReportingAs as);

  // For the engine.
  virtual const std::shared_ptr<engine::RoundTrainer>& trainer() const = 0;
  virtual std::function<node::RoundsView()> view() const = 0;
  virtual const RoundsStatus& status() const = 0;  // until stop()
  // The node whose training the status reports carry; null before that node ends.
  virtual void watch(node::Node* node) = 0;
  // Ends the rounds and waits until everything is on the disk. The caller holds the data directory's lock.
  // Further calls do nothing.
  virtual void stop() = 0;
};

// What both kinds take from a network's profile.
std::shared_ptr<engine::RoundTrainer> make_round_trainer(const config::ConsensusPart& consensus,
                                                         const RuntimeServices& services);
rounds::OuterRules outer_rules(const config::ConsensusPart& consensus, const Hash256& tokenizer);

}  // namespace neuroshard::runtime
