// What `run` does for the outer rounds of its network: the round's node on the host's executor, with its
// files in D/rounds, beside the engine's training.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "app/node/command.h"
#include "app/node/peer_host.h"
#include "app/node/rounds_status.h"
#include "core/engine/data_directory.h"
#include "core/engine/round_store.h"
#include "core/engine/round_trainer.h"
#include "core/node/snapshot.h"
#include "core/rounds/level_node.h"

namespace neuroshard::app {

class RoundsPart {
 public:
  // Null when the network has no outer rounds. host, logger and context outlive it.
  static std::unique_ptr<RoundsPart> make(PeerHost& host, const engine::DataDirectory& directory,
                                          Logger& logger, CommandContext& context, ReportingAs as);
  ~RoundsPart();

  // For the engine.
  const std::shared_ptr<engine::RoundTrainer>& trainer() const { return trainer_; }
  std::function<node::RoundsView()> view() const;
  const RoundsStatus& status() const { return *status_; }  // until stop()
  // Whose training is told to others; null before it goes.
  void watch(node::Node* node);

  // Tells the other members that this node goes, and whether they can do without it now
  // (rounds/level_node.h).
  void leave();
  bool left();
  bool needed();
  // Ends the rounds and waits until everything is on the disk; while the data directory is ours. Once is
  // enough.
  void stop();

 private:
  // What the rounds' node is asked about it, by any thread.
  struct Board {
    std::mutex mutex;
    node::RoundsView view;
  };
  class Peers;

  RoundsPart(PeerHost& host, const engine::DataDirectory& directory, Logger& logger, CommandContext& context);
  rounds::LevelOptions options(const engine::RoundFacts& facts) const;
  // The host's executor.
  void on_ready(const engine::RoundFacts& facts);
  void begin(rounds::LevelOptions options, rounds::KnownState known);
  void on_certified(const rounds::RoundChain& chain, const rounds::Anchor& state,
                    const rounds::StepResult* step);
  void look();
  void look_for_another_tokenizer();
  void refresh();

  PeerHost& host_;
  Logger& logger_;
  CommandContext& context_;
  const engine::ConsensusPart consensus_;
  const Hash256 network_;
  const std::string folder_;
  std::shared_ptr<engine::RoundTrainer> trainer_;
  std::unique_ptr<rounds::RoundLearner> other_learner_;  // CommandContext
  std::shared_ptr<Board> board_ = std::make_shared<Board>();
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

  // The host's executor.
  bool stopped_ = false;
  std::optional<Hash256> tokenizer_;
  std::unique_ptr<Peers> peers_;
  std::unique_ptr<engine::RoundFiles> files_;
  std::unique_ptr<engine::RoundThread> work_;
  std::unique_ptr<rounds::LevelNode> node_;
  std::unique_ptr<RoundsStatus> status_;
  std::uint64_t values_ = 0;
  std::uint32_t contributors_ = 0;
  std::string left_out_reason_, trouble_;
  MonotonicTime next_check_{};
  std::unique_ptr<TimerHandle> timer_;
};

}  // namespace neuroshard::app
