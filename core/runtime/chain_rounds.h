// The outer rounds of a running node: a node of the network's chain (core/chain) and the rounds as its content
// (core/rounds/training_rounds.h), on the host's executor, beside the engine's training. Each fragment
// of the model is a row of the chain. The files are in D/chain.
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
#include "core/chain/remembered_checks.h"
#include "core/config/data_directory.h"
#include "core/config/model_part.h"
#include "core/engine/round_store.h"
#include "core/net/method_table.h"
#include "core/node/member_decisions.h"
#include "core/node/snapshot.h"
#include "core/rounds/training_rounds.h"
#include "core/runtime/batch_lists.h"
#include "core/runtime/block_notices.h"
#include "core/runtime/chain_report.h"
#include "core/runtime/chain_settings.h"
#include "core/runtime/chain_trust.h"
#include "core/runtime/disk_room.h"
#include "core/runtime/held_rows.h"
#include "core/runtime/interpositions.h"
#include "core/runtime/member_peers.h"
#include "core/runtime/memory_report.h"
#include "core/runtime/own_model_part.h"
#include "core/runtime/own_model_size.h"
#include "core/runtime/patient_executor.h"
#include "core/runtime/peer_host.h"
#include "core/runtime/pipeline_service.h"
#include "core/runtime/round_entries.h"
#include "core/runtime/rounds_presence.h"
#include "core/runtime/rounds_status.h"
#include "core/runtime/running_chain.h"

namespace neuroshard::runtime {

class ChainRounds final {
 public:
  // Null when the network has no outer rounds. host and files, which gets the batch lists, outlive it.
  static std::unique_ptr<ChainRounds> make(PeerHost& host, data::PeerSource& files,
                                           const config::DataDirectory& directory,
                                           const RuntimeServices& services,
                                           std::shared_ptr<storage::DiskBudget> disk,
                                           Interpositions interpositions, ReportingAs as);
  ~ChainRounds();

  // For the engine.
  const std::shared_ptr<engine::RoundTrainer>& trainer() const { return trainer_; }
  // Null: every member of the network holds the whole model.
  std::shared_ptr<engine::PipelineTrainer> pipeline() const;
  std::function<node::RoundsView()> view() const;
  const RoundsStatus& status() const { return *status_; }  // until stop()
  // The part of this node's invitations about the rounds' chain. The source may outlive the rounds, and is called
  // on the host's executor.
  InvitationSource invitations();
  // The source of the decisions may outlive the rounds, and not the host.
  std::shared_ptr<node::MemberDecisions> decisions();
  // The node whose training the status reports carry; null before that node ends.
  void watch(node::Node* node);
  // The network's model has another size than the one here: the node has to end and start anew. Any thread.
  bool has_other_size() const { return size_.has_changed(); }
  // The same where this node may offer more memory for a larger model. Any thread.
  bool offers_more() const { return offers_more_; }
  // Ends the rounds and waits until everything is on the disk. The caller holds the data directory's lock.
  // Further calls do nothing.
  void stop();

  // The user has set this limit; 0: none. Any thread, until stop().
  void limit_memory(std::uint64_t bytes);
  // Until stop().
  Presence& presence() { return presence_; }

 private:
  // The part that any thread may read at any moment.
  struct Board {
    std::mutex mutex;
    node::RoundsView view;
  };
  ChainRounds(PeerHost& host, data::PeerSource& files, const config::DataDirectory& directory,
              const RuntimeServices& services, std::shared_ptr<storage::DiskBudget> disk,
              Interpositions interpositions);
  void listen();
  // ---- The host's executor, all below.
  void open(ReportingAs as, std::uint64_t seed);
  void on_ready(const engine::RoundFacts& facts);
  void close_chain();
  void begin(ChainBeginning& beginning);
  crypto::Delegation own_delegation() const;
  crypto::PublicKey wallet_key() const;
  void on_chain_call(const net::Caller& from, net::Method method, ByteSpan request, const net::Reply& reply);
  void on_piece_call(const net::Caller& from, ByteSpan request, const net::Reply& reply);
  void on_block(const chain::ChainTip& before, const chain::ChainTip& tip, const chain::BlockPtr& block);
  void rank_members(const chain::ChainTip& tip);
  void ban_equivocators(const std::vector<chain::Evidence>& proven);
  void on_anchor(std::uint64_t round, std::uint32_t row, const rounds::Anchor& anchor);
  std::vector<rounds::RoundLearner*> learners();
  void make_room(const std::vector<rounds::Fragment>& fragments);
  void refresh_later();
  void refresh();
  ChainMoment moment(const engine::RoundTrainer::View& trainer) const;
  // Null until the chain runs.
  chain::ChainNode* node() const { return chain_ ? chain_->node() : nullptr; }
  rounds::TrainingRounds* training() const { return chain_ ? chain_->training() : nullptr; }
  // Of this node's part, for texts.
  std::optional<engine::RoundTrainer::Newest> certified_weights() const;
  chain::RegistryPtr registry() const;  // of the newest block; null: this node has no history yet

  PeerHost& host_;
  const std::shared_ptr<storage::DiskBudget> disk_;
  const std::unique_ptr<storage::FileEnv> counted_files_;  // of what rounds write
  const RuntimeServices services_;                         // with those files
  const Interpositions interpositions_;
  const config::ConsensusPart consensus_;
  const Hash256 network_;
  const std::string directory_;
  const Expected<ChainTrust> trust_;
  OwnModelPart part_;
  OwnModelSize size_;
  HeldRows rows_;
  const bool shares_tokenizer_;         // no publisher gives one
  const std::shared_ptr<Spool> spool_;  // of payloads and anchors
  std::shared_ptr<engine::RoundTrainer> trainer_;
  std::unique_ptr<PipelineService> pipeline_;  // null: see pipeline()
  std::unique_ptr<BatchLists> batches_;
  std::vector<std::unique_ptr<rounds::RoundLearner>> other_learners_;  // by row; see Interpositions
  std::shared_ptr<Board> board_ = std::make_shared<Board>();
  Lifetime lifetime_;

  // The host's executor.
  bool stopped_ = false;
  bool one_lan_ = false;
  std::optional<crypto::Delegation> wallet_;
  std::optional<Hash256> tokenizer_;
  bool reads_beginning_ = false;                  // on another thread
  std::optional<engine::RoundFacts> next_model_;  // with another tokenizer, made meanwhile
  std::vector<rounds::Fragment> fragments_;       // by row
  std::unique_ptr<PatientExecutor> executor_;
  std::unique_ptr<MemberPeers> peers_;
  std::unique_ptr<net::PeerCaller> other_caller_;  // see Interpositions
  std::unique_ptr<engine::RoundThread> work_;
  std::unique_ptr<DiskRoom> room_;
  chain::SignatureChecks every_check_;
  chain::RememberedChecks checks_{every_check_};
  std::unique_ptr<RunningChain> chain_;  // null: the model is not ready yet, or its files can't be opened
  RoundsPresence presence_{host_, [this] { return node(); }};
  std::unique_ptr<RoundsStatus> status_;
  RoundEntries entries_;
  BlockNotices notices_;
  std::optional<ChainReport> report_;  // once the rows are known
  const MemoryReport memory_report_;
  std::string trouble_;
  std::vector<net::MethodTable::Registration> methods_;
  std::unique_ptr<TimerHandle> timer_;
  std::unique_ptr<TimerHandle> raised_;  // the memory limit, and not long ago
  std::atomic<bool> offers_more_{false};
};

}  // namespace neuroshard::runtime
