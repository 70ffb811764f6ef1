// The outer rounds of a running node: one round endpoint per fragment of the model, on the host's executor,
// beside the engine's training. Their files are in D/rounds, or in D/rounds/fragment-N (from 1) when the
// model has several fragments.
//
// Threads: the owner's, which is not the host's executor, unless a comment says otherwise.
// Errors: none; problems are in the view and in the log.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/base/lifetime.h"
#include "core/config/data_directory.h"
#include "core/engine/round_store.h"
#include "core/engine/round_trainer.h"
#include "core/net/method_table.h"
#include "core/node/snapshot.h"
#include "core/rounds/fragment_nodes.h"
#include "core/rounds/sync.h"
#include "core/runtime/outer_rounds.h"

namespace neuroshard::runtime {

class RoundsService final : public OuterRounds {
 public:
  // Null when the network has no outer rounds. The host outlives it.
  static std::unique_ptr<RoundsService> make(PeerHost& host, const config::DataDirectory& directory,
                                             const RuntimeServices& services, Interpositions interpositions,
                                             ReportingAs as);
  ~RoundsService() override;

  // For the engine.
  const std::shared_ptr<engine::RoundTrainer>& trainer() const override { return trainer_; }
  std::function<node::RoundsView()> view() const override;
  const RoundsStatus& status() const override { return *status_; }  // until stop()
  // The node whose training the status reports carry; null before that node ends.
  void watch(node::Node* node) override;

  // By a change of the members (rounds/fragment_nodes.h). The node is away when the members can continue
  // without it, as far as it knows. It waits at most two seconds for members that do not answer, and until
  // the deadline for a round that needs its vote.
  void announce_away(MonotonicTime deadline, std::function<void()> done) override;
  void announce_back() override;
  // Ends the rounds and waits until everything is on the disk. The caller holds the data directory's lock.
  // Further calls do nothing.
  void stop() override;

 private:
  // The part that any thread may read at any moment.
  struct Board {
    std::mutex mutex;
    node::RoundsView view;
  };
  class Peers;
  struct AwayNotice {
    MonotonicTime begun, deadline;
    std::function<void()> done;  // empty once it was called
  };

  RoundsService(PeerHost& host, const config::DataDirectory& directory, const RuntimeServices& services,
                Interpositions interpositions);
  rounds::LevelOptions options() const;
  void listen();
  // ---- The host's executor, all below.
  void open(ReportingAs as, std::uint64_t seed);
  void on_call(const net::Caller& from, net::Method method, ByteSpan request, const net::Reply& reply);
  void on_ready(const engine::RoundFacts& facts);
  Expected<void> open_files();
  void begin(std::vector<rounds::KnownState> known);
  void on_certified(std::size_t fragment, const rounds::RoundChain& chain, const rounds::Anchor& state,
                    const rounds::StepResult* step);
  void note_own_part(std::size_t fragment, const rounds::RoundChain& chain, const rounds::StepResult& step);
  std::string name_of(std::size_t fragment) const;  // "fragment 2 of 4: "; empty for a single fragment
  void check_away_notice();
  void refresh_later();
  void check_tokenizer();
  void compare_tokenizer(const Hash256& own, const Expected<Bytes>& answer);
  void fill_view(node::RoundsView& view, bool resting) const;
  RoundsSeen seen() const;
  void refresh();

  PeerHost& host_;
  const RuntimeServices services_;
  const Interpositions interpositions_;
  const config::ConsensusPart consensus_;
  const rounds::SyncChoice sync_;
  const Hash256 network_;
  const std::string folder_;
  std::shared_ptr<engine::RoundTrainer> trainer_;
  std::vector<std::unique_ptr<rounds::RoundLearner>> other_learners_;  // by fragment; see Interpositions
  std::shared_ptr<Board> board_ = std::make_shared<Board>();
  Lifetime lifetime_;

  // The host's executor.
  bool stopped_ = false;
  std::optional<Hash256> tokenizer_;
  std::unique_ptr<Peers> peers_;
  std::unique_ptr<net::PeerCaller> other_caller_;  // see Interpositions
  std::vector<rounds::Fragment> fragments_;
  std::vector<std::unique_ptr<engine::RoundFiles>> files_;  // by fragment
  std::unique_ptr<engine::RoundThread> work_;
  std::unique_ptr<rounds::FragmentNodes> nodes_;
  std::unique_ptr<RoundsStatus> status_;
  std::vector<std::uint32_t> contributors_;  // of each fragment's newest round
  std::string left_out_reason_, trouble_;
  MonotonicTime next_check_{};
  std::optional<AwayNotice> away_;  // from announce_away() to announce_back()
  std::vector<net::MethodTable::Registration> methods_;
  std::unique_ptr<TimerHandle> timer_, away_timer_;
};

}  // namespace neuroshard::runtime
