// What `run` knows and tells of the training of its network: this node's signed reports and those of others
// (core/status), who contributed to the last rounds, and what of it a person has to be told.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "app/node/peer_host.h"
#include "core/config/network_profile.h"
#include "core/engine/round_trainer.h"
#include "core/node/node.h"
#include "core/node/rounds_report.h"
#include "core/rounds/fragment_nodes.h"
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
  RoundsStatus(PeerHost& host, const config::ConsensusPart& consensus, const Hash256& network, ReportingAs as,
               std::uint64_t seed);
  ~RoundsStatus();

  // Another node asks for reports (net::Method::StatusPull).
  void answer(const net::Caller& from, ByteSpan request, const net::Respond& respond);
  // A fragment's node has taken its chain's newest certificate; `step`: null when its anchor was fetched.
  // name: what the fragment is called before what happened; empty where there is one.
  void certified(std::size_t fragment, const std::string& name, const rounds::RoundChain& chain,
                 const rounds::StepResult* step, const engine::RoundTrainer::View& training);
  // Looks at everything and completes the view, which has what the rounds' nodes say. Null: there are none
  // yet.
  void look(const rounds::FragmentNodes* nodes, node::RoundsView& view);

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
  status::OwnStatus own_status(const rounds::FragmentNodes* nodes, const node::Snapshot& own) const;
  node::GlobalTrainingView global(const status::Summary& summary, const rounds::FragmentNodes* nodes) const;
  std::vector<node::TrainingNodeEntry> node_entries(const status::Summary& summary) const;
  status::LineNeed line_need(const rounds::FragmentNodes* nodes, const node::Snapshot* own) const;
  std::vector<node::Alert> judge(const status::Summary& summary, const node::RoundsView& view,
                                 const rounds::FragmentNodes* nodes);

  PeerHost& host_;
  const std::uint64_t batch_tokens_, inner_steps_, group_members_;
  outer::CodecOptions codec_;
  status::LineNeed need_;  // as of the last look
  status::StatusGossip gossip_;
  status::LossHistory losses_;
  std::deque<node::RoundEntry> rounds_;  // newest first
  std::deque<bool> outcomes_;            // of this node's latest contributions
  std::uint64_t contributed_ = 0, failed_ = 0;
  struct Before {
    std::uint64_t round = 0;
    Duration rested{};
    MonotonicTime at{};
  };
  std::map<std::size_t, Before> before_;  // the newest round of each fragment
  std::uint64_t corruptions_ = 0;
  std::optional<MonotonicTime> corrupted_at_;
  MonotonicTime next_shard_{};
  std::shared_ptr<Board> board_ = std::make_shared<Board>();
  std::shared_ptr<Watched> watched_ = std::make_shared<Watched>();
};

}  // namespace neuroshard::app
