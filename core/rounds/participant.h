// What a node of a round is, whether its members are one group (node.h) or dealt into many (grouped_node.h):
// it trains and contributes, holds what the others of its group sent and serves it, keeps the certified state
// and checks it. How members agree on a certificate, and how a node finds what it missed, is the derived
// class's. One state machine on one executor; whatever computes or waits is behind learner.h.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "core/base/log.h"
#include "core/base/rng.h"
#include "core/net/peer_channel.h"
#include "core/rounds/agreement.h"
#include "core/rounds/chain.h"
#include "core/rounds/contributions.h"
#include "core/rounds/fetch.h"
#include "core/rounds/learner.h"
#include "core/rounds/outbox.h"

namespace neuroshard::rounds {

struct ParticipantOptions {
  ContributionRules rules;  // of the profile, as are the next ones
  OuterRules outer;
  std::uint64_t bias_values = 0;
  bool join = true;  // wants to be a member
  Duration tick = std::chrono::milliseconds(500);
  Duration grace = std::chrono::seconds(3);               // after the close, for contributions on their way
  Duration first_deadline = std::chrono::minutes(30);     // before there are rounds to measure by
  Duration provisional_after = std::chrono::seconds(60);  // closed for so long without a certificate
  Duration poll = std::chrono::seconds(5);                // how far are the others?
  OutboxOptions outbox;
  FetchOptions fetch;
};

// What is known at the start: the state of a round, to be held against its certificate. A checkpoint that is
// made when a round was certified keeps both, and is written before the chain is: the owner queues it in the
// callback below, the node saves its chain after that.
struct KnownState {
  std::uint64_t round = 0;  // 0: the initial state, equal on all nodes
  Anchor state;
  std::optional<RoundCertificate> certificate;  // of that round
};

struct RoundServices {  // all outlive the node
  const crypto::KeyPair& key;
  net::PeerCaller& caller;
  RoundPeers& peers;
  Executor& executor;
  const Clock& clock;
  RoundLearner& learner;
  RoundStore& store;
  RoundWork& work;
  Logger& logger;
};

struct RoundView {
  RoundPhase phase = RoundPhase::Joining;
  std::uint64_t round = 0;  // of the newest certificate
  Hash256 anchor{};         // its anchor
  Hash256 own_anchor{};     // of the state that this node holds, as it computed it
  std::uint64_t tokens = 0;
  std::size_t members = 0;
  bool member = false;
  std::uint32_t view = 0;
  std::uint64_t certified = 0;    // rounds that this node took part in to the end
  std::uint64_t contributed = 0;  // own contributions in certificates
  std::uint64_t left_out = 0;     // own contributions that are in none
  std::uint64_t corruptions = 0;  // own anchors found wrong
  std::uint64_t fetched_anchors = 0;
  std::uint64_t provisional = 0;  // times that no quorum was in reach
  std::uint64_t failed_saves = 0;
  std::uint64_t bytes_sent = 0, bytes_received = 0;
  Duration waiting{};  // in all, between own contribution and next anchor; training may go on meanwhile
  std::array<std::uint64_t, static_cast<std::size_t>(Verdict::Count_)> refused{};  // posts of others
  std::uint64_t evidence = 0;                                                      // senders of two payloads
};

class RoundParticipant {
 public:
  virtual ~RoundParticipant();
  static bool handles(net::Method method);
  // Threads: the executor's, all members.
  void on_call(const net::Caller& from, net::Method method, ByteSpan request, const net::Respond& respond);
  RoundView view() const;
  virtual RoundStatus status() const = 0;
  // Of the newest round whose state this node holds.
  const Anchor& state() const { return state_; }
  std::uint64_t state_round() const { return state_round_; }

 protected:
  RoundParticipant(RoundServices services, const ParticipantOptions& options, KnownState known,
                   std::uint64_t seed);

  // ---- What the derived class knows.
  virtual void advance() = 0;
  virtual void settle_state() = 0;
  virtual std::uint64_t tip_round() const = 0;  // of the newest certificate, and its anchor
  virtual const Hash256& tip_anchor() const = 0;
  virtual bool is_in(const net::NodeId& id) const = 0;  // a member
  virtual std::size_t member_count() const = 0;
  // Who contributes together, ascending by id: all members, or a sub-group.
  virtual const std::vector<RoundMember>& group() const = 0;
  virtual std::size_t leader() const = 0;  // of the group, now
  virtual void send(std::uint32_t key, const RoundItem& item, const std::vector<net::NodeId>& to) = 0;
  virtual PostAnswer on_post(const net::NodeId& from, ByteSpan bytes) = 0;
  virtual Expected<Bytes> on_chain(ByteSpan request) = 0;
  virtual void catch_up_with(const net::NodeId& id) = 0;
  virtual void save(std::function<void()> then) = 0;
  virtual void own_state_is_wrong(const Hash256& computed) = 0;
  virtual void adopt(Anchor state, std::vector<Hash256> leaves, const StepResult* step) = 0;
  virtual std::uint32_t round_steps() const { return common_.rules.inner_steps; }
  virtual AfterBoundary after_boundary() const { return AfterBoundary::Rest; }
  virtual Payload other_payload(const Hash256&) const { return nullptr; }  // besides contributions'

  // ---- participant.cpp: training, contributing, the state
  virtual bool is_member() const { return is_in(self_); }
  std::vector<net::NodeId> others() const;  // of the group
  Duration deadline() const;
  void close(MonotonicTime now, bool as_measure);
  void contribute();
  void contribute_again();
  void go_provisional();
  void check_own_state(std::function<void()> when_right);
  void hold(Anchor state, std::vector<Hash256> leaves, const StepResult* step);
  void fetch_state(std::vector<net::NodeId> sources);
  outer::AnchorIdentity identity(std::uint64_t round) const;
  bool holds_tip() const { return state_ && state_checked_ && state_round_ == tip_round(); }
  RoundPhase phase(bool provisional, bool member) const;
  void forget_old_changes();
  void load_payload();
  void remind_learner();
  // Does nothing once this is gone.
  template <class F>
  auto guarded(F f) {
    return [alive = std::weak_ptr<bool>(alive_), f = std::move(f)](auto&&... values) mutable {
      if (!alive.expired()) f(std::forward<decltype(values)>(values)...);
    };
  }

  // ---- participant_exchange.cpp: what comes from others and goes to them
  Verdict at_round(std::uint64_t round, const net::NodeId& from);
  // Items of a group's round; changes and certificates are the derived class's.
  Verdict on_item(const net::NodeId& from, RoundItem& item, RoundAgreement* agreement);
  Verdict on_change(const net::NodeId& from, const ChangePost& post, std::size_t most);
  Verdict on_contribution(ContributionPost post);
  Expected<Bytes> on_fetch(ByteSpan bytes) const;
  void ask_for_payload(const net::NodeId& owner);
  void ask_for_contribution(const Hash256& payload);
  enum class Finding : std::uint8_t { Wait, Wrong, Compute };
  // Whether a body's contributors are what this node knows of them; what it lacks it asks for.
  Finding examine_contributors(const RoundBody& body);
  // A body of what is here, its anchor to be computed.
  RoundBody body_of_usable(const Hash256& previous) const;
  // Tokens that count for the length of a history: a liar's are capped as its weight is.
  std::uint64_t counted_tokens(const std::vector<RoundContributor>& contributors) const;
  std::vector<StepInput> inputs_of(const std::vector<RoundContributor>& contributors) const;
  static Hash256 step_key(std::uint64_t round, const std::vector<RoundContributor>& contributors);
  std::vector<RoundChange> changes_for_body(std::size_t most) const;
  bool poll_is_due();
  void ask_status(const net::Contact& contact, std::function<void(const RoundStatus&)> done);
  void shuffle(std::vector<net::NodeId>* ids);

  RoundServices services_;
  const ParticipantOptions common_;
  const net::NodeId self_;
  const Hash256 network_;
  Rng rng_;
  RoundOutbox outbox_;
  RoundFetcher fetcher_;
  KnownState initial_;

  Anchor state_;  // of state_round_
  std::uint64_t state_round_ = 0;
  Hash256 state_hash_{};
  bool state_checked_ = false;  // held against its certificate
  bool settling_ = false;       // a state is being computed or fetched
  struct Served {
    Hash256 hash{};
    Anchor state;
    std::vector<Hash256> leaves;
  };
  std::deque<Served> served_;  // the newest two, for those who fetch

  // The round that is being made.
  std::uint64_t round_ = 0;
  std::optional<RoundContributions> contributions_, previous_contributions_;
  std::uint64_t memory_round_ = 0;
  std::optional<std::uint64_t> abstain_;  // up to this round, because its votes are forgotten
  std::optional<Contribution> own_;       // this round's
  Bytes kept_payload_;                    // of it, from before a restart
  bool training_ = false, boundary_asked_ = false, closed_ = false, provisional_ = false, counted_ = false;
  bool syncing_ = false, evidence_sent_ = false;
  bool given_ = false;  // the learner has made a delta since its last start
  MonotonicTime opened_{}, closed_at_{}, contributed_at_{}, next_poll_{}, next_change_{}, next_fetch_{};
  std::unordered_set<Hash256, net::NodeIdHash> asked_;  // payloads and contributions on their way
  std::map<net::NodeId, RoundChange> changes_;
  std::map<net::NodeId, std::uint64_t> sequences_;
  std::uint64_t sequence_ = 0;
  std::deque<Duration> durations_;  // of the last three rounds

  RoundView counters_;
  std::unique_ptr<TimerHandle> timer_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

 private:
  void send_contribution(RoundLearner::Boundary boundary);
  Expected<Bytes> state_piece(const FetchRequest& request) const;
};

}  // namespace neuroshard::rounds
