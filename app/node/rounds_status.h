// What `run` knows and tells of the training of its network: this node's signed reports and those of others
// (core/status), who contributed to the last rounds, and what of it a person has to be told.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "app/node/peer_host.h"
#include "core/engine/network_profile.h"
#include "core/engine/round_trainer.h"
#include "core/node/node.h"
#include "core/node/rounds_report.h"
#include "core/rounds/participant.h"
#include "core/status/gossip.h"
#include "core/status/warnings.h"

namespace neuroshard::app {

// Whose word a node's reports carry, and among whom.
struct ReportingAs {
  std::optional<crypto::Delegation> delegation;
  bool one_lan = false;
};

class RoundsStatus {
 public:
  // The host outlives it.  Threads: the host's executor, also for destruction; those below say otherwise.
  RoundsStatus(PeerHost& host, const engine::ConsensusPart& consensus, const Hash256& network, ReportingAs as,
               std::uint64_t seed);
  ~RoundsStatus();

  // A request of another node that is one for reports.
  bool take(const net::Caller& from, net::Method method, ByteSpan request, const net::Respond& respond);
  // The round's node has taken the chain's newest certificate; `step`: null when its anchor was fetched.
  void certified(const rounds::RoundChain& chain, const rounds::StepResult* step,
                 const engine::RoundTrainer::View& training);
  // Looks at everything and completes the view, which has what the round's node says.
  void look(const rounds::RoundEndpoint* node, node::RoundsView& view);

  // ---- Any thread.
  // Whose losses, steps and data are told; null: nobody's any more. It may go once this has returned.
  void watch(node::Node* node);
  // For the engine; what they give outlives this.
  std::function<void(node::Reply<node::RoundsReport>)> report() const;
  std::function<std::vector<node::Alert>()> alerts() const;

 private:
  struct Board {
    std::mutex mutex;
    node::RoundsReport report;
    std::vector<node::Alert> alerts;
  };
  struct Watched {
    std::mutex mutex;
    node::Node* node = nullptr;
    std::optional<std::uint32_t> shard;
  };

  std::shared_ptr<const node::Snapshot> own_snapshot() const;
  void ask_for_shard();
  void count_rounds(const rounds::RoundView& now);
  status::OwnStatus own_status(const rounds::RoundEndpoint* node, const node::Snapshot& own) const;
  node::GlobalTrainingView global(const status::Summary& summary, const rounds::RoundEndpoint* node) const;
  std::vector<node::TrainingNodeEntry> nodes(const status::Summary& summary) const;
  std::vector<node::Alert> judge(const status::Summary& summary, const node::RoundsView& view);

  PeerHost& host_;
  const std::uint64_t batch_tokens_;
  status::StatusGossip gossip_;
  status::LossHistory losses_;
  std::deque<node::RoundEntry> rounds_;       // newest first
  std::map<std::uint64_t, Hash256> anchors_;  // certified ones, by round
  std::deque<bool> outcomes_;                 // of this node's latest rounds
  std::uint64_t contributed_ = 0, failed_ = 0;
  Duration rested_{};
  MonotonicTime certified_at_{};
  std::uint64_t corruptions_ = 0;
  std::optional<MonotonicTime> corrupted_at_;
  MonotonicTime next_shard_{};
  std::shared_ptr<Board> board_ = std::make_shared<Board>();
  std::shared_ptr<Watched> watched_ = std::make_shared<Watched>();
};

}  // namespace neuroshard::app
