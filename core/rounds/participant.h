// What a node of a round is, whether its members are one group (node.h) or dealt into many (grouped_node.h):
// it trains and contributes, holds what the others of its group sent and serves it, keeps the certified
// state and checks it, follows the chain of certificates, joins and goes. How members agree on a certificate
// is the derived class's. One state machine on one executor; whatever computes or waits is behind learner.h.
//
// As members come and go, a node of one sort hands all that goes on (RoundOngoing) to one of the other
// (level_node.h).
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
#include "core/rounds/sync.h"

namespace neuroshard::rounds {

struct ParticipantOptions {
  ContributionRules rules;  // of the profile, as are the next ones
  OuterRules outer;
  RoundSync sync = RoundSync::Plain;
  std::uint64_t bias_values = 0;
  bool join = true;  // wants to be a member
  // Other slots' rounds need this training, too (fragment_nodes.h). So it begins with the first state that is
  // here, member or not, and does not end with a membership; what comes of it goes along when it is a member.
  // And it joins only when ready_to_join says that it can train.
  bool shares_training = false;
  std::function<bool()> ready_to_join;  // null: always
  // Slots that share a line fetch their states one after the other: all at once each would take as long as
  // all together, and rounds that are shorter pass before. Null: always.
  std::function<bool()> may_fetch_state;
  std::size_t group_members = max_group_members;  // more are dealt into sub-groups (dealing.h)
  // Known beforehand; none: that of the first node that answers, or one of this node alone.
  std::optional<RoundBody> genesis;
  Duration tick = std::chrono::milliseconds(500);
  Duration grace = std::chrono::seconds(3);  // after the close, for contributions on their way
  // Before there are rounds to measure by, and this node has done its part of one.
  Duration first_deadline = std::chrono::minutes(30);
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
  std::optional<RoundLink> certificate;  // of that round
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
  std::size_t groups = 1;  // sub-groups that they are dealt into
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
  // While no quorum is in reach: of its own group, those whose work for this round it has not heard of.
  std::vector<net::NodeId> missing;
  Duration waiting{};  // in all, between own contribution and next anchor; training may go on meanwhile
  std::array<std::uint64_t, static_cast<std::size_t>(Verdict::Count_)> refused{};  // posts of others
  std::uint64_t evidence = 0;                                                      // senders of two payloads
};

// A node of rounds as others see it, of whatever sort.  Threads: the executor's, all members.
class RoundEndpoint {
 public:
  virtual ~RoundEndpoint() = default;
  virtual void on_call(const net::Caller& from, net::Method method, ByteSpan request,
                       const net::Respond& respond) = 0;
  virtual RoundView view() const = 0;
  virtual RoundStatus status() const = 0;
  // Of the newest round whose state this node holds.
  virtual const Anchor& state() const = 0;
  virtual std::uint64_t state_round() const = 0;
  // Null: no history yet.
  virtual const RoundChain* chain() const = 0;
};

// After each certificate that this node has taken with its state: the chain's newest. `step`: null when the
// state was fetched.
using RoundCertified = std::function<void(const RoundChain&, const Anchor&, const StepResult* step)>;

// What was kept of a node's votes, of either sort.
struct KeptVotes {
  std::uint64_t round = 0, sequence = 0;
  std::optional<Contribution> own;
  bool grouped = false;
  AgreementMemory first, top;  // of the group; of all sub-groups
  Payload content{};           // of two levels: what the upper lock names; null: no lock, or not known
};
Bytes encode_votes(const KeptVotes& votes);
Expected<KeptVotes> decode_votes(ByteSpan bytes);

// What of a node goes on from round to round, and from one sort of node to the other.
struct RoundOngoing {
  struct Served {
    Hash256 hash{};
    Anchor state;
    std::vector<Hash256> leaves;
  };
  std::optional<RoundChain> chain_;
  KnownState initial_;
  Anchor state_;  // of state_round_
  std::uint64_t state_round_ = 0;
  Hash256 state_hash_{};
  bool state_checked_ = false;  // held against its certificate
  std::deque<Served> served_;   // the newest two, for those who fetch

  std::uint64_t memory_round_ = 0;        // of the votes that are kept
  std::optional<KeptVotes> kept_votes_;   // of before a restart
  bool memory_lost_ = false;              // what was kept can't be read
  std::optional<std::uint64_t> abstain_;  // up to this round, because its votes are forgotten
  std::optional<Contribution> own_;       // this round's
  Bytes kept_payload_;                    // of it, from before a restart
  std::uint64_t saved_chain_ = 0;         // 1 + its newest round
  bool provisional_ = false, counted_ = false;
  bool given_ = false;           // the learner has made a delta since its last start
  bool group_absent_ = false;    // its sub-group was in no certificate: the delta is carried
  bool outside_ = false;         // trains by itself, being no member
  bool begun_ = false;           // the learner has had a state
  bool repairing_ = false;       // what was trained is from a broken anchor
  bool trained_before_ = false;  // in the round before this one, as a member
  bool on_time_ = false;         // so it began with the others, and knows how long a round takes
  bool leaving_ = false;
  int greetings_ = 0;              // times that all members were asked since its start
  std::set<net::NodeId> greeted_;  // who has answered them
  MonotonicTime started_{}, heard_{}, left_at_{};
  MonotonicTime opened_{}, contributed_at_{}, next_poll_{}, next_change_{}, next_fetch_{};
  std::map<net::NodeId, RoundChange> changes_;
  std::map<net::NodeId, std::uint64_t> sequences_;
  std::uint64_t sequence_ = 0;
  std::deque<Duration> durations_;  // of the last three rounds
  RoundView counters_;
};

class RoundParticipant : public RoundEndpoint, protected RoundOngoing {
 public:
  ~RoundParticipant() override;
  static bool handles(net::Method method);
  void on_call(const net::Caller& from, net::Method method, ByteSpan request,
               const net::Respond& respond) override;
  RoundView view() const override;
  RoundStatus status() const override;
  const Anchor& state() const override { return state_; }
  std::uint64_t state_round() const override { return state_round_; }
  const RoundChain* chain() const override { return chain_ ? &*chain_ : nullptr; }

  // This node begins: from what it kept, or from a node of the other sort that was handed over.
  void start();
  void start(RoundOngoing ongoing);
  // The learner made progress: look now, not at the next tick.
  void progressed() { advance(); }
  // This node goes: it contributes what it has, if that is enough, and tells the members; their next members
  // are without it.
  void leave();
  // Takes leave() back: this node stays a member, or asks to become one.
  void rejoin();
  // The members can do without this node, as far as it knows; true when it is none.
  bool left() const;
  // The state of the newest round is being fetched.
  bool fetches_state() const { return settling_ && !fetching_state_.expired(); }
  // The members have its word and end the round, which they can't without it.
  bool needed() const { return leaving_ && takes_part() && closed_ && round_ends_early(); }

  // ---- For level_node.h.
  // Told, in a task of its own, when there are too many members for this sort of node, or too few. It does
  // nothing more in the round, until hand_over(), or until a certificate changes that.
  void when_unfit(std::function<void()> told) { unfit_told_ = std::move(told); }
  bool unfit() const { return unfit_told_ && chain_ && !fits(member_count()); }
  // From now on this node only finishes telling what it has told, and serves what it holds.
  RoundOngoing hand_over();
  bool still_telling() const { return outbox_.waiting() > 0; }
  Expected<Bytes> on_fetch(ByteSpan bytes) const;

 protected:
  RoundParticipant(RoundServices services, const ParticipantOptions& options, KnownState known,
                   std::uint64_t seed, RoundCertified certified);

  // ---- What the derived class knows.
  virtual void open_round() = 0;
  virtual void advance() = 0;
  virtual void settle_state() = 0;
  virtual bool is_grouped() const = 0;  // of two levels
  bool fits(std::size_t members) const { return (members > common_.group_members) == is_grouped(); }
  virtual bool begin_history() { return false; }  // without one from others; whether there is one now
  virtual GroupedCommons& commons() = 0;
  // Who contributes together, ascending by id: all members, or a sub-group.
  virtual const std::vector<RoundMember>& group() const = 0;
  virtual std::size_t leader() const = 0;  // of the group, now
  virtual void send(std::uint32_t key, const RoundItem& item, const std::vector<net::NodeId>& to) = 0;
  virtual PostAnswer on_post(const net::NodeId& from, ByteSpan bytes) = 0;
  virtual KeptVotes votes() const = 0;
  virtual void take_votes(KeptVotes votes) = 0;
  virtual bool takes_part() const = 0;         // it may vote in this round
  virtual bool tells_certificate() const = 0;  // not all have it yet from this node
  // Who has to know that this node joins or goes; whom it asks how far they are, back: for the first time.
  virtual std::vector<net::NodeId> told_of_change() = 0;
  virtual std::vector<net::NodeId> asked_how_far(bool back) = 0;
  virtual void forget_computed() = 0;
  // A certificate without this node's contribution: whether its whole sub-group is missing.
  virtual bool group_is_absent(const RoundChain&) const { return false; }
  virtual void looks_every_tick() {}
  virtual void heard_view(const net::NodeId&, std::uint32_t) {}  // in which a node is, of this round
  virtual std::uint32_t view_number() const = 0;
  virtual std::size_t group_count_now() const { return 1; }
  virtual std::uint32_t round_steps() const { return common_.rules.inner_steps; }
  bool trained_enough(std::uint32_t steps) const {
    return steps >= round_steps() + services_.learner.extra_steps() || services_.learner.ends_early();
  }
  virtual Payload other_payload(const Hash256&) const { return nullptr; }  // besides contributions'
  // Others' payloads are of use now. Over a slow line they would only hold up what comes first.
  virtual bool wants_payloads() const { return true; }
  // From the state before to that of the newest round; nothing: they are not known.
  virtual std::optional<std::uint64_t> bytes_of_step() const { return std::nullopt; }

  // ---- participant.cpp: training, contributing, the state
  bool is_in(const net::NodeId& id) const;  // a member
  virtual bool is_member() const { return is_in(self_); }
  std::size_t member_count() const { return chain_ ? chain_->members().size() : 0; }
  std::uint64_t tip_round() const { return chain_->tip().round; }
  const Hash256& tip_anchor() const { return chain_->tip().anchor; }
  std::vector<net::NodeId> others() const;  // of the group
  Duration deadline() const;
  Duration deadline_by_own_pace() const;
  AfterBoundary after_boundary() const {
    return common_.sync == RoundSync::Delayed ? AfterBoundary::TrainOn : AfterBoundary::Rest;
  }
  void reset_round();
  void begin_training();
  Carry carry() const;
  void close(MonotonicTime now, bool as_measure);
  void contribute();
  void contribute_again();
  void check_own_state(std::function<void()> when_right);
  bool take_known_state();
  void adopt(Anchor state, std::vector<Hash256> leaves, const StepResult* step);
  void fetch_state(std::vector<net::NodeId> sources);
  void take_fetched(std::uint64_t round, const Hash256& hash, Anchor state);
  bool goes_on_fetching() const;
  void say_unfit();
  outer::AnchorIdentity identity(std::uint64_t round) const;
  bool holds_tip() const { return state_ && state_checked_ && state_round_ == tip_round(); }
  RoundPhase phase(bool provisional, bool member) const;
  void forget_old_changes();
  // Does nothing once this is gone.
  template <class F>
  auto guarded(F f) {
    return [alive = std::weak_ptr<bool>(alive_), f = std::move(f)](auto&&... values) mutable {
      if (!alive.expired()) f(std::forward<decltype(values)>(values)...);
    };
  }

  // ---- participant_waiting.cpp: how long a closed round waits for what is on its way
  std::uint64_t state_bytes() const;
  std::uint64_t bytes_to_all() const;
  bool pieces_come(Duration within);
  void note_progress();
  bool contributions_are_late();
  void note_fetch(const net::NodeId& from, ByteSpan request);
  bool waits_for_returner(Duration waited);
  void forget_returners();
  void go_provisional();

  // ---- participant_members.cpp: becoming a member and going, and what it does
  // while it is none
  bool goes(const net::NodeId& id) const;
  // Those who go would leave the others without a quorum: what can be certified is certified while they are
  // here.
  bool round_ends_early() const;
  // All that is to come of the group is here: who goes has said so after its contribution, or makes none.
  bool all_usable() const;
  void post_change();
  void train_outside();
  void train_for_other_slots();

  // ---- participant_memory.cpp: what is kept for a restart
  void restore();
  void save(std::function<void()> then);
  void save_chain();

  // ---- participant_history.cpp: following the chain
  void poll();
  void consider(const net::Contact& from, const RoundStatus& status);
  bool may_give_up() const;
  void catch_up_with(const net::NodeId& id);
  // afresh: from the genesis on, to take another history's place.
  void sync_from(const net::Contact& from, bool afresh = false);
  bool may_sync_from(const net::NodeId& id, bool afresh) const;
  void take_chain(const net::Contact& from, bool afresh, Expected<Bytes> answer);
  void give_up_history();
  Expected<void> take_link(const RoundLink& link);
  void link_taken();
  Expected<Bytes> on_chain(ByteSpan request) const;
  void ask_status(const net::Contact& contact, std::function<void(const RoundStatus&)> done);

  // ---- participant_exchange.cpp: what comes from others and goes to them
  // A post that is for a node of the other sort.
  PostAnswer on_other_sort(const net::NodeId& from, ByteSpan bytes);
  Verdict at_round(std::uint64_t round, const net::NodeId& from);
  // Items of a group's round; changes and certificates are the derived class's.
  Verdict on_item(const net::NodeId& from, RoundItem& item, RoundAgreement* agreement);
  Verdict on_change(const net::NodeId& from, const ChangePost& post, std::size_t most);
  Verdict on_contribution(ContributionPost post);

  // ---- participant_proofs.cpp: two payloads of one sender, taken and told once while it is a member
  Verdict on_evidence(const net::NodeId& from, const EvidencePost& evidence);
  bool proves(const EvidencePost& evidence) const;
  // What holds. from: who told it; this node: it has found out itself.
  void take_proof(const EvidencePost& evidence, const net::NodeId& from);
  virtual void liar_found() = 0;  // the agreements are to be told
  bool is_liar(const net::NodeId& id) const { return proven_.count(id) != 0; }
  virtual void tell_proof(const EvidencePost& evidence, const net::NodeId& from);
  void tell_proofs_again();
  std::uint32_t key_of_proof(const EvidencePost& evidence) const;

  void ask_for_payload(const net::NodeId& owner);
  void ask_for_payloads();                               // all that were announced
  void fetch_payload(const Contribution& contribution);  // of this round, or of the one before
  void ask_for_contribution(const Hash256& payload, bool keep = false);  // keep: as keep_named()
  // Of this round, or of the one before.
  void fetch_contribution(std::uint64_t round, const Hash256& payload, std::vector<net::NodeId> sources,
                          bool keep);
  // Disproved: wrong, because it names a sender of two payloads, of which all are told.
  enum class Finding : std::uint8_t { Wait, Wrong, Disproved, Compute };
  // Whether a body's contributors are what this node knows of them; what it lacks it asks for.
  Finding examine_contributors(const RoundBody& body);
  // The same of a body that a quorum has prepared.
  Finding examine_locked(const RoundBody& body);
  // A body of what is here, its anchor to be computed.
  RoundBody body_of_usable(const Hash256& previous) const;
  // Tokens that count for the length of a history: a liar's are capped as its weight is.
  std::uint64_t counted_tokens(const std::vector<RoundContributor>& contributors) const;
  std::vector<StepInput> inputs_of(const std::vector<RoundContributor>& contributors) const;
  static Hash256 step_key(std::uint64_t round, const std::vector<RoundContributor>& contributors);
  std::vector<RoundChange> changes_for_body(std::size_t most) const;
  void shuffle(std::vector<net::NodeId>* ids);

  RoundServices services_;
  const ParticipantOptions common_;
  const RoundCertified on_certified_;
  const net::NodeId self_;
  const Hash256 network_;
  Rng rng_;
  RoundOutbox outbox_;
  RoundFetcher fetcher_;

  // The round that is being made.
  std::uint64_t round_ = 0;
  std::optional<RoundContributions> contributions_, previous_contributions_;
  bool settling_ = false;  // a state is being computed or fetched
  bool training_ = false, boundary_asked_ = false, closed_ = false;
  MonotonicTime closed_at_{}, fetched_at_{};
  std::optional<MonotonicTime> enough_at_;
  std::uint64_t fetched_bytes_ = 0;
  std::unordered_set<Hash256, net::NodeIdHash> asked_;  // payloads and contributions on their way
  // Of the round before, which may be all that this node lacks for its state.
  std::unordered_set<Hash256, net::NodeIdHash> asked_before_;
  RoundFetcher::Ticket fetching_state_;
  std::uint64_t fetching_round_ = 0;
  bool overtaken_ = false;  // had most of a state when that was too old
  struct Returner {
    std::uint64_t since = 0;  // round
    MonotonicTime asked{};
  };
  std::map<net::NodeId, Returner> returners_;  // members that fetched what a round begins with
  bool payload_lost_ = false;                  // one of them can't be had
  std::set<net::NodeId> proven_;               // liars among the members
  std::vector<EvidencePost> new_proofs_;       // that are told again in the next round
  std::vector<net::NodeId> untold_;            // who has not had all that this node said in the round before

  std::set<net::NodeId> beginners_;  // who have no history either, while this node has none

  // Asked for certificates, and whether it was from the genesis on.
  std::map<net::NodeId, bool> syncing_;
  MonotonicTime next_sync_{};  // if one is still asked

  std::unique_ptr<TimerHandle> timer_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

 private:
  void tick();
  void restore_votes();
  void send_contribution(RoundLearner::Boundary boundary);
  void show_contribution(const Contribution& c, Bytes payload);
  void hold(Anchor state, std::vector<Hash256> leaves, const StepResult* step);
  Expected<Bytes> state_piece(const FetchRequest& request) const;

  std::function<void()> unfit_told_;
  bool unfit_said_ = false, retired_ = false;
};

}  // namespace neuroshard::rounds
