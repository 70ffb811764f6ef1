// The outer rounds of a node whose network has a chain: a node of the chain (core/chain) and the rounds as its
// content (core/rounds/training_rounds.h), on the host's executor, beside the engine's training. Each fragment
// of the model is a row of the chain. The files are in D/chain.
//
// Threads: the owner's, which is not the host's executor, unless a comment says otherwise.
// Errors: none; problems are in the view and in the log.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/base/lifetime.h"
#include "core/chain/node.h"
#include "core/chain/remembered_checks.h"
#include "core/engine/chain_files.h"
#include "core/engine/round_store.h"
#include "core/net/method_table.h"
#include "core/rounds/joint_anchors.h"
#include "core/rounds/training_rounds.h"
#include "core/runtime/outer_rounds.h"

namespace neuroshard::runtime {

class ChainRounds final : public OuterRounds {
 public:
  // The host outlives it.
  static std::unique_ptr<ChainRounds> make(PeerHost& host, const config::DataDirectory& directory,
                                           const RuntimeServices& services, Interpositions interpositions,
                                           ReportingAs as);
  ~ChainRounds() override;

  const std::shared_ptr<engine::RoundTrainer>& trainer() const override { return trainer_; }
  std::function<node::RoundsView()> view() const override;
  const RoundsStatus& status() const override { return *status_; }
  void watch(node::Node* node) override;
  void stop() override;

  // By a statement in the next block. The node waits at most two seconds for voters that do not answer.
  void announce_away(MonotonicTime deadline, std::function<void()> done) override;
  void announce_back() override;

 private:
  // The part that any thread may read at any moment.
  struct Board {
    std::mutex mutex;
    node::RoundsView view;
  };
  class Peers;
  class Content;   // the rounds, and a look at each block before they have it
  class Patient;   // the host's executor; never refuses a task
  struct Known;    // what the round thread has read and computed before the node begins
  struct Result {  // a round's new row, of which the report waits for this node's state
    node::RoundEntry entry;
    std::uint32_t row = 0;
  };
  struct AwayNotice {
    MonotonicTime begun, deadline;
    std::function<void()> done;  // empty once it was called
  };

  ChainRounds(PeerHost& host, const config::DataDirectory& directory, const RuntimeServices& services,
              Interpositions interpositions);
  void listen();
  // ---- The host's executor, all below.
  void open(ReportingAs as, std::uint64_t seed);
  void on_ready(const engine::RoundFacts& facts);
  Expected<void> open_files();
  void begin(Known& known);
  chain::ChainRules rules() const;
  chain::ChainOptions chain_options(const Known& known) const;
  rounds::TrainingOptions training_options() const;
  void on_chain_call(const net::Caller& from, net::Method method, ByteSpan request, const net::Reply& reply);
  void on_piece_call(const net::Caller& from, ByteSpan request, const net::Reply& reply);
  void on_block(const chain::ChainTip& before, const chain::ChainTip& tip, const chain::BlockPtr& block);
  void on_anchor(std::uint64_t round, std::uint32_t row, const rounds::Anchor& anchor);
  void note_joint_anchor(const chain::ChainTip& tip);
  std::string name_of(std::uint32_t row) const;  // "fragment 2 of 4: "; empty for a single fragment
  bool may_go() const;
  void check_away_notice();
  void refresh_later();
  void refresh();
  std::string phase(const chain::ChainView& chain, const rounds::TrainingView& training, bool resting) const;
  void fill_view(node::RoundsView& view, bool resting) const;
  RoundsSeen seen() const;

  PeerHost& host_;
  const RuntimeServices services_;
  const Interpositions interpositions_;
  const config::ConsensusPart consensus_;
  const rounds::SyncChoice sync_;
  const Hash256 network_;
  const std::string directory_;
  std::shared_ptr<engine::RoundTrainer> trainer_;
  std::vector<std::unique_ptr<rounds::RoundLearner>> other_learners_;  // by row; see Interpositions
  std::shared_ptr<Board> board_ = std::make_shared<Board>();
  Lifetime lifetime_;

  // The host's executor.
  bool stopped_ = false;
  std::optional<crypto::Delegation> wallet_;
  std::optional<Hash256> tokenizer_;
  std::vector<rounds::Fragment> fragments_;  // by row
  std::unique_ptr<Patient> executor_;
  std::unique_ptr<Peers> peers_;
  std::unique_ptr<net::PeerCaller> other_caller_;  // see Interpositions
  std::unique_ptr<engine::ChainFiles> files_;
  std::unique_ptr<engine::RoundFiles> own_files_;
  std::unique_ptr<engine::RoundThread> work_;
  chain::SignatureChecks every_check_;
  chain::RememberedChecks checks_{every_check_};
  std::unique_ptr<rounds::TrainingRounds> training_;
  std::unique_ptr<Content> content_;
  std::unique_ptr<chain::ChainNode> node_;
  std::unique_ptr<RoundsStatus> status_;
  rounds::JointAnchors anchors_;                   // certified
  std::map<std::uint64_t, Hash256> held_;          // joint anchors of rounds that this node held
  std::map<std::uint32_t, std::uint64_t> kept_;    // by row: the round of the state on the disk
  std::map<std::uint64_t, Result> results_;        // by round
  std::map<std::uint32_t, std::uint32_t> newest_;  // by row: contributors of its newest round
  std::uint64_t fetched_ = 0, left_out_ = 0;
  std::string left_out_reason_, trouble_;
  std::optional<AwayNotice> away_;  // from announce_away() to announce_back()
  std::vector<net::MethodTable::Registration> methods_;
  std::unique_ptr<TimerHandle> timer_, away_timer_;
};

}  // namespace neuroshard::runtime
