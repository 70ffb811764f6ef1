// The state of the network's training as this node sees it: its own signed status reports and those of other
// nodes (core/status), the contributors of the last rounds, and the alerts that a person should see.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/config/network_profile.h"
#include "core/engine/round_trainer.h"
#include "core/node/node.h"
#include "core/node/rounds_report.h"
#include "core/outer/codec.h"
#include "core/runtime/peer_host.h"
#include "core/status/gossip.h"
#include "core/status/warnings.h"

namespace neuroshard::runtime {

// The content of a node's status reports.
struct ReportingAs {
  std::optional<crypto::Delegation> delegation;  // of the wallet that the node works for
  bool one_lan = false;                          // a private network: many nodes share one address
};

// The rounds' state for reports and alerts.
struct RoundsSeen {
  bool begun = false;  // this node has a history; else nothing below counts
  std::uint64_t round = 0, tokens = 0;
  std::set<net::NodeId> members;
  std::uint64_t contributed = 0, failed = 0;  // own contributions that counted, and that did not
  std::uint64_t held_round = 0;               // whose anchors this node holds
  Hash256 held_anchor{}, previous_anchor{};   // joint ones; zeros: not known
  // The certified joint anchor of a round. Nothing: not known.
  std::function<std::optional<Hash256>(std::uint64_t round)> anchor_of =
      [](std::uint64_t) -> std::optional<Hash256> { return std::nullopt; };
  std::uint64_t exchanging = 0;  // members that exchange payloads with this node, itself included
  std::uint64_t values = 0;      // in a round's payload of one member
  std::optional<status::Standstill> standstill;
  std::optional<Duration> voucher_awaited;  // this candidate lacks nothing else, for so long
  std::size_t others = 0;                   // peers that hold another history of this network
  bool asks_succession = false;             // this node's person decides whether it goes on with others
  std::vector<node::RefusedEntry> refused;
};

class RoundsStatus {
 public:
  // The host outlives this.  Threads: the host's executor, also for destruction, unless a comment says
  // otherwise. Errors: none.
  RoundsStatus(PeerHost& host, const config::ConsensusPart& consensus, const Hash256& network, ReportingAs as,
               std::uint64_t seed);
  ~RoundsStatus();

  // Answers another node's request for status reports (net::Method::StatusPull).
  void answer(const net::Caller& from, ByteSpan request, const net::Respond& respond);
  // Adds the newest round of a fragment to the report; its time, step and waiting are filled in here.
  void on_round(std::size_t fragment, node::RoundEntry entry, const engine::RoundTrainer::View& training);
  // Brings reports and alerts up to date and fills the rest of `view`, which has the rounds' state already.
  void update(const RoundsSeen& seen, node::RoundsView& view);

  // ---- Any thread.
  // The node whose losses, steps and data the reports carry; null: none from now on. The former one may end
  // once this has returned.
  void watch(node::Node* node);
  // For the engine. The functions may outlive this object.
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
  void query_shard();
  void count_rounds(const RoundsSeen& seen);
  status::OwnStatus own_status(const RoundsSeen& seen, const node::Snapshot& own);
  node::GlobalTrainingView global(const status::Summary& summary, const RoundsSeen& seen) const;
  std::vector<node::TrainingNodeEntry> node_entries(const status::Summary& summary) const;
  status::LineNeed line_need(const RoundsSeen& seen, const node::Snapshot* own) const;
  void complete(node::RoundsView& view, const node::Snapshot* own) const;
  node::RoundsReport report_of(const status::Summary& summary, const RoundsSeen& seen) const;
  std::vector<node::Alert> find_alerts(const status::Summary& summary, const node::RoundsView& view,
                                       const RoundsSeen& seen);

  PeerHost& host_;
  const std::uint64_t batch_tokens_, inner_steps_;
  outer::CodecOptions codec_;
  status::LineNeed need_;  // as of the last update
  status::StatusGossip gossip_;
  status::OwnLoss own_loss_;
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

}  // namespace neuroshard::runtime
