// A node's part in the outer rounds of one slot (SPEC §7): it trains, contributes, collects, agrees with the
// other members on a certificate (agreement.h), takes the new anchor, and goes on; and it joins, falls
// behind, is cut off, comes back and repairs itself. One state machine on one executor; whatever computes or
// waits is behind learner.h.
//
// A round is closed when a quorum of members has contributed H steps, or at 1.25 × the median of the last
// three; a slower node then sends what it has (≥ H/20 steps). Without a quorum in reach the node trains on,
// provisionally: it makes no outer step of its own, so there is nothing to take back; when a certificate
// comes, its work that is in none is carried onto the new anchor, once.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
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
#include "core/rounds/sync.h"

namespace neuroshard::rounds {

struct RoundOptions {
  ContributionRules rules;  // of the profile, as are the next four
  OuterRules outer;
  RoundSync sync = RoundSync::Plain;
  std::uint32_t first_steps = 0;  // of the first round; 0: H, as all others have (fragments.h)
  std::uint64_t bias_values = 0;
  // Known beforehand; none: that of the first node that answers, or one of this node alone.
  std::optional<RoundBody> genesis;
  bool join = true;  // wants to be a member
  Duration tick = std::chrono::milliseconds(500);
  Duration grace = std::chrono::seconds(3);               // after the close, for contributions on their way
  Duration first_deadline = std::chrono::minutes(30);     // before there are rounds to measure by
  Duration provisional_after = std::chrono::seconds(60);  // closed for so long without a certificate
  Duration poll = std::chrono::seconds(5);                // how far are the others?
  // No node answers so long: it begins alone. Soon when nobody is known who could (RoundPeers::nobody).
  Duration found_alone_after = std::chrono::seconds(15);
  Duration found_alone_soon = std::chrono::seconds(3);
  AgreementOptions agreement;
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

class RoundNode final : private AgreementHost {
 public:
  // After each certificate that this node has taken with its state. `step`: null when it was fetched.
  using Certified = std::function<void(const RoundCertificate&, const Anchor&, const StepResult* step)>;

  // Threads: the executor's, all members.
  RoundNode(RoundServices services, RoundOptions options, KnownState known, std::uint64_t seed,
            Certified certified);
  ~RoundNode() override;
  void start();
  // The learner made progress: look now, not at the next tick.
  void progressed() { advance(); }
  // This node goes: it contributes what it has, if that is enough, and tells the members; their next members
  // are without it. Where they could make no certificate without it, the round ends at once, with its help.
  void leave();
  // The members can do without this node, as far as it knows; true when it is none.
  bool left() const;
  // The members have its word and end the round, which they can't without it.
  bool needed() const { return leaving_ && agreement_ && closed_ && round_ends_early(); }

  static bool handles(net::Method method);
  void on_call(const net::Caller& from, net::Method method, ByteSpan request, const net::Respond& respond);

  RoundView view() const;
  RoundStatus status() const;
  const RoundChain* chain() const { return chain_ ? &*chain_ : nullptr; }
  // Of the newest round whose state this node holds.
  const Anchor& state() const { return state_; }
  std::uint64_t state_round() const { return state_round_; }

 private:
  struct Judging {
    RoundBody body;
    bool computing = false;
  };
  using Computed = std::function<void(const Expected<StepResult>&)>;
  struct Computing {
    std::uint64_t round = 0;
    std::optional<Expected<StepResult>> result;
    std::vector<Computed> waiting;
  };

  // node.cpp: life, training, contributing
  void tick();
  void advance();
  void open_round();
  void begin_training();
  Carry carry() const;
  void check_close();
  void contribute();
  void send_contribution(RoundLearner::Boundary boundary);
  void go_provisional();
  Duration deadline() const;
  std::uint32_t round_steps() const {
    return round_ == 1 && options_.first_steps != 0 ? options_.first_steps : options_.rules.inner_steps;
  }
  void check_own_state(std::function<void()> when_right);
  // Does nothing once this is gone.
  template <class F>
  auto guarded(F f) {
    return [alive = std::weak_ptr<bool>(alive_), f = std::move(f)](auto&&... values) mutable {
      if (!alive.expired()) f(std::forward<decltype(values)>(values)...);
    };
  }

  // node_agree.cpp: AgreementHost, judging, computing
  void broadcast(const RoundItem& item) override;
  void remember(const AgreementMemory& memory, std::function<void()> then) override;
  void judge(const RoundBody& body) override;
  void make_body() override;
  void certified(const RoundCertificate& certificate) override;
  void review();
  bool body_follows(const RoundBody& body) const;
  enum class Finding : std::uint8_t { Wait, Wrong, Compute };
  Finding examine(const RoundBody& body);
  void try_make_body();
  bool contributions_are_late();
  std::vector<RoundChange> changes_for_body() const;
  void compute(const std::vector<RoundContributor>& contributors, Computed done);
  static Hash256 step_key(std::uint64_t round, const std::vector<RoundContributor>& contributors);
  void ask_for_payload(const net::NodeId& owner);
  void ask_for_contribution(const Hash256& payload);

  // node_sync.cpp: answering and catching up
  PostAnswer on_post(const net::NodeId& from, ByteSpan bytes);
  Verdict on_contribution(ContributionPost post);
  Verdict at_round(std::uint64_t round, const net::NodeId& from);
  Expected<Bytes> on_fetch(ByteSpan bytes) const;
  void poll();
  void consider(const net::Contact& from, const RoundStatus& status);
  // afresh: from the genesis on, to take another history's place.
  void sync_from(const net::Contact& from, bool afresh = false);
  void take_chain(const net::Contact& from, bool afresh, Expected<Bytes> answer);
  void give_up_history();
  Expected<void> take_certificate(const RoundCertificate& certificate);
  void settle_state();
  bool take_known_state();
  bool step_to_tip();
  void stepped(std::uint64_t round, const Expected<StepResult>& step);
  std::vector<net::NodeId> sources();
  void adopt(Anchor state, std::vector<Hash256> leaves, const StepResult* step);
  void fetch_state();
  void found_alone();

  // node_members.cpp
  bool is_member() const;
  std::vector<net::NodeId> others() const;
  bool goes(const net::NodeId& id) const;
  bool round_ends_early() const;
  void post_change();
  void train_outside();

  // node_memory.cpp
  void restore();
  void restore_votes();
  void save(std::function<void()> then);
  void save_chain();
  void save_payload(const Bytes& payload);

  RoundServices services_;
  const RoundOptions options_;
  const net::NodeId self_;
  const Hash256 network_;
  Rng rng_;
  const Certified on_certified_;
  RoundOutbox outbox_;
  RoundFetcher fetcher_;
  KnownState initial_;

  std::optional<RoundChain> chain_;
  Anchor state_;  // of state_round_
  std::uint64_t state_round_ = 0;
  Hash256 state_hash_{};
  bool state_checked_ = false;  // held against its certificate
  struct Served {
    std::uint64_t round = 0;
    Hash256 hash{};
    Anchor state;
    std::vector<Hash256> leaves;
  };
  std::deque<Served> served_;  // the newest two, for those who fetch

  // The round that is being made.
  std::uint64_t round_ = 0;
  std::optional<RoundContributions> contributions_, previous_contributions_;
  std::optional<RoundAgreement> agreement_;
  AgreementMemory memory_;
  std::uint64_t memory_round_ = 0;
  bool memory_lost_ = false;              // what was kept can't be read
  std::optional<std::uint64_t> abstain_;  // from this round's votes, for that reason
  std::optional<Contribution> own_;       // this round's
  Bytes kept_payload_;                    // of it, from before a restart
  std::uint64_t saved_chain_ = 0;         // 1 + its newest round
  bool training_ = false, boundary_asked_ = false, closed_ = false, provisional_ = false, counted_ = false;
  bool want_body_ = false, making_body_ = false, fetching_state_ = false, syncing_ = false, leaving_ = false;
  bool evidence_sent_ = false;
  bool outside_ = false;    // trains by itself, being no member
  bool given_ = false;      // the learner has made a delta since its last start
  bool repairing_ = false;  // what was trained is from a broken anchor
  MonotonicTime opened_{}, closed_at_{}, contributed_at_{}, started_{}, next_poll_{}, next_change_{},
      next_fetch_{}, left_at_{}, heard_{}, fetched_at_{};
  std::uint64_t fetched_bytes_ = 0;
  std::map<Hash256, Judging> judging_;
  std::map<Hash256, std::shared_ptr<Computing>> computing_;
  std::set<Hash256> asked_;  // payloads and contributions on their way
  std::map<net::NodeId, RoundChange> changes_;
  std::map<net::NodeId, std::uint64_t> sequences_;
  std::uint64_t sequence_ = 0;
  std::deque<Duration> durations_;  // of the last three rounds

  RoundView counters_;
  std::unique_ptr<TimerHandle> timer_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace neuroshard::rounds
