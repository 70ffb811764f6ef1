// What `run` does for the outer rounds of its network: the round's node, or one for each of the model's
// fragments, on the host's executor, with its files in D/rounds (of several: D/rounds/fragment-N, from 1 on),
// beside the engine's training.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "app/node/command.h"
#include "app/node/peer_host.h"
#include "app/node/rounds_status.h"
#include "core/config/data_directory.h"
#include "core/engine/round_store.h"
#include "core/engine/round_trainer.h"
#include "core/net/method_table.h"
#include "core/node/snapshot.h"
#include "core/rounds/fragment_nodes.h"
#include "core/rounds/sync.h"

namespace neuroshard::app {

class RoundsPart {
 public:
  // Null when the network has no outer rounds. host, logger and context outlive it.
  static std::unique_ptr<RoundsPart> make(PeerHost& host, const config::DataDirectory& directory,
                                          Logger& logger, CommandContext& context, ReportingAs as);
  ~RoundsPart();

  // For the engine.
  const std::shared_ptr<engine::RoundTrainer>& trainer() const { return trainer_; }
  std::function<node::RoundsView()> view() const;
  const RoundsStatus& status() const { return *status_; }  // until stop()
  // Whose training is told to others; null before it goes.
  void watch(node::Node* node);

  // Tells the other members that this node goes, and whether they can do without it now
  // (rounds/fragment_nodes.h).
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

  RoundsPart(PeerHost& host, const config::DataDirectory& directory, Logger& logger, CommandContext& context);
  rounds::LevelOptions options() const;
  // The host's executor.
  void on_ready(const engine::RoundFacts& facts);
  Expected<void> open_files();
  void begin(std::vector<rounds::KnownState> known);
  void on_certified(std::size_t fragment, const rounds::RoundChain& chain, const rounds::Anchor& state,
                    const rounds::StepResult* step);
  std::string name_of(std::size_t fragment) const;  // "fragment 2 of 4: "; empty where there is one
  void look();
  void look_for_another_tokenizer();
  void refresh();

  PeerHost& host_;
  Logger& logger_;
  CommandContext& context_;
  const config::ConsensusPart consensus_;
  const rounds::SyncChoice sync_;
  const Hash256 network_;
  const std::string folder_;
  std::shared_ptr<engine::RoundTrainer> trainer_;
  std::vector<std::unique_ptr<rounds::RoundLearner>> other_learners_;  // CommandContext; by fragment
  std::shared_ptr<Board> board_ = std::make_shared<Board>();
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

  // The host's executor.
  bool stopped_ = false;
  std::optional<Hash256> tokenizer_;
  std::unique_ptr<Peers> peers_;
  std::unique_ptr<net::PeerCaller> other_caller_;  // CommandContext
  std::vector<rounds::Fragment> fragments_;
  std::vector<std::unique_ptr<engine::RoundFiles>> files_;  // by fragment
  std::unique_ptr<engine::RoundThread> work_;
  std::unique_ptr<rounds::FragmentNodes> nodes_;
  std::unique_ptr<RoundsStatus> status_;
  std::vector<net::MethodTable::Registration> methods_;
  std::vector<std::uint32_t> contributors_;  // of each fragment's newest round
  std::string left_out_reason_, trouble_;
  MonotonicTime next_check_{};
  std::unique_ptr<TimerHandle> timer_;
};

}  // namespace neuroshard::app
