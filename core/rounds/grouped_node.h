// A node's part in rounds of two levels (SPEC §7; grouped_body.h has the protocol's argument): what RoundNode
// is for up to 64 members, for 17 to 16,384. In a round it
//   trains, and contributes to its sub-group;
//   agrees there, each with each, on the sub-group's aggregate (RoundAgreement);
//   as a speaker, brings the result to the round's leader, and the members' votes;
//   fetches the aggregates that the leader's proposal names, computes the anchor, votes;
//   takes the certificate, and passes it on in its sub-group.
// Messages of a node and round: of the order of the sub-group's members plus the number of sub-groups. What
// the leader says goes to two speakers of each sub-group and from them to the rest.
//
// Its work is carried into the next contribution when its sub-group could not certify; it is dropped when the
// sub-group did so without it, as a late contribution is in a small group.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "core/rounds/detail/computations.h"
#include "core/rounds/grouped_commons.h"
#include "core/rounds/grouped_messages.h"
#include "core/rounds/node.h"

namespace neuroshard::rounds {

// Where a chain begins: what everybody has to know beforehand, or what this node knew when it last ran.
struct GroupedBase {
  std::uint64_t round = 0;
  Hash256 tip{};
  Hash256 anchor{};
  std::uint64_t tokens = 0;
  RosterPtr roster;
};
GroupedBase grouped_genesis(const RoundSlot& slot, const Hash256& anchor,
                            std::vector<crypto::PublicKey> founders);

struct GroupedOptions {
  ContributionRules rules;
  OuterRules outer;
  GroupedBase genesis;
  bool join = true;
  Duration tick = std::chrono::milliseconds(500);
  Duration grace = std::chrono::seconds(3);       // after the close, for contributions on their way
  Duration group_wait = std::chrono::seconds(6);  // that a leader waits for results after the first
  Duration first_deadline = std::chrono::minutes(30);
  Duration provisional_after = std::chrono::seconds(60);
  Duration poll = std::chrono::seconds(5);
  AgreementOptions group{std::chrono::seconds(10), std::chrono::minutes(2)};
  AgreementOptions top{std::chrono::seconds(30), std::chrono::minutes(4)};
  OutboxOptions outbox;
  FetchOptions fetch;
  std::size_t fetches = 8;  // aggregates at a time
};

class GroupedNode final {
 public:
  // After each round that this node has taken with its state. `step`: null when the state was fetched.
  using Certified = std::function<void(const GroupedLinkPtr&, const Anchor&, const StepResult* step)>;
  // known: a state, of the round that it names. commons outlives it.  Threads: the executor's, all members.
  GroupedNode(RoundServices services, GroupedCommons& commons, GroupedOptions options, KnownState known,
              std::uint64_t seed, Certified certified);
  ~GroupedNode();
  void start();
  void on_call(const net::Caller& from, net::Method method, ByteSpan request, const net::Respond& respond);

  RoundView view() const;
  RoundStatus status() const;
  const Anchor& state() const { return state_; }
  std::uint64_t state_round() const { return state_round_; }
  const GroupedBase& base() const { return tip_; }
  const Deal& deal() const { return *deal_; }

 private:
  class Level;
  struct Aggregate {
    std::uint64_t round = 0;
    Payload payload;
  };
  struct Content {
    Payload bytes;
    std::shared_ptr<const GroupedBody> body;
    MonotonicTime came{};
    std::size_t here = 0;  // of its aggregates, from the first on
  };
  struct Bundle {
    std::map<std::uint16_t, crypto::Signature> signatures;
    std::size_t sent = 0;
  };

  // grouped_node.cpp: life, training, contributing
  void tick();
  void advance();
  void open_round();
  void begin_training();
  void check_close();
  void contribute();
  void send_contribution(RoundLearner::Boundary boundary);
  void go_provisional();
  void post_change();
  Duration deadline() const;
  bool is_member() const { return index_ < roster().members.size(); }
  const Roster& roster() const { return *tip_.roster; }
  const std::vector<RoundMember>& fellows() const { return *deal_->groups[group_]; }
  std::vector<net::NodeId> other_fellows() const;
  void restore();
  void save(std::function<void()> then);
  void save_chain();
  template <class F>
  auto guarded(F f) {
    return [alive = std::weak_ptr<bool>(alive_), f = std::move(f)](auto&&... values) mutable {
      if (!alive.expired()) f(std::forward<decltype(values)>(values)...);
    };
  }

  // grouped_group.cpp: the sub-group's agreement
  enum class Finding : std::uint8_t { Wait, Wrong, Compute };
  Finding examine_group(const RoundBody& body);
  void review_group();
  void try_group_body();
  void group_certified(const RoundQuorum& certificate);
  void aggregate_of(const std::vector<RoundContributor>& contributors,
                    std::function<void(const Expected<GroupAggregate>&)> done);
  std::uint64_t counted_tokens(const std::vector<RoundContributor>& contributors) const;
  void ask_for_payload(const net::NodeId& owner);
  void ask_for_contribution(const Hash256& payload);
  Verdict on_group_item(const net::NodeId& from, ByteSpan bytes);
  Verdict on_contribution(ContributionPost post);

  // grouped_top.cpp: results, the proposal, collected votes
  void top_broadcast(const RoundItem& item);
  void send_vote(const VotePost& post);
  void spread(std::uint32_t key, GroupedPost post);
  void pass_on(std::uint32_t key, GroupedPost post);
  void speak();
  void pump_bundles(bool incomplete);
  void try_top_body();
  void propose(std::vector<GroupResult> groups, std::vector<RoundChange> changes);
  void review_top();
  bool body_is_fair(const Content& content) const;
  bool fetch_aggregates(const GroupedBody& body, std::size_t* here);
  void anchor_of(const GroupedBody& body, std::function<void(const SharedStep&)> done);
  Verdict on_proposal(GroupedProposal post);
  Verdict on_votes(const net::NodeId& from, const CollectedVotes& post);
  Verdict on_result(GroupResult result);

  // grouped_sync.cpp: answering, catching up
  PostAnswer on_post(const net::NodeId& from, ByteSpan bytes);
  Verdict dispatch(const net::NodeId& from, GroupedPost post);
  Verdict at_round(std::uint64_t round, const net::NodeId& from);
  Expected<Bytes> on_fetch(ByteSpan bytes) const;
  Expected<Bytes> on_chain(ByteSpan bytes) const;
  Verdict on_certificate(const net::NodeId& from, const RoundQuorum& quorum);
  void take_link(const GroupedLinkPtr& link);
  void poll();
  void sync_from(const net::NodeId& id);
  void settle_state();
  void adopt(Anchor state, std::vector<Hash256> leaves, const StepResult* step);
  void fetch_state();
  void check_own_state(std::function<void()> when_right);
  std::vector<net::NodeId> some_members(std::size_t count);

  RoundServices services_;
  GroupedCommons& commons_;
  const GroupedOptions options_;
  const net::NodeId self_;
  Rng rng_;
  const Certified on_certified_;
  RoundOutbox outbox_;
  RoundFetcher fetcher_;
  KnownState initial_;

  GroupedBase tip_;
  std::deque<GroupedLinkPtr> links_;  // the newest
  Anchor state_;
  std::uint64_t state_round_ = 0;
  Hash256 state_hash_{};
  bool state_checked_ = false;
  struct Served {
    Hash256 hash{};
    Anchor state;
    std::vector<Hash256> leaves;
  };
  std::deque<Served> served_;

  // The round that is being made.
  std::uint64_t round_ = 0;
  std::shared_ptr<const Deal> deal_;
  std::size_t index_ = 0;  // in the roster; its size: no member
  std::uint16_t group_ = 0;
  std::optional<RoundContributions> contributions_, previous_contributions_;
  std::unique_ptr<Level> group_level_, top_level_;
  std::uint64_t memory_round_ = 0;
  std::optional<std::uint64_t> abstain_;  // up to this round, because its votes are forgotten
  std::optional<Contribution> own_;
  Bytes kept_payload_;
  std::map<Hash256, Aggregate> aggregates_;
  std::map<Hash256, Content> contents_;
  std::map<std::uint16_t, RoundQuorum> results_;  // heard of as a leader
  std::optional<RoundQuorum> own_result_;
  MonotonicTime own_result_at_{}, first_result_at_{};
  std::set<std::uint16_t> unreachable_;  // sub-groups whose aggregates nobody gave
  std::map<std::pair<VoteStep, std::uint32_t>, std::map<Hash256, Bundle>> bundles_;
  std::optional<GroupedProposal> proposal_;  // this node's, until its prepare is signed
  std::optional<std::uint32_t> spoke_in_;    // the view in which the result was brought
  bool training_ = false, boundary_asked_ = false, closed_ = false, provisional_ = false, counted_ = false;
  bool group_left_out_ = false, want_group_body_ = false, making_group_body_ = false, want_top_body_ = false,
       making_top_body_ = false, settling_ = false, syncing_ = false, step_failed_ = false;
  MonotonicTime opened_{}, closed_at_{}, contributed_at_{}, next_poll_{}, next_change_{}, next_fetch_{};
  Computations<Expected<GroupAggregate>> group_work_;
  Computations<SharedStep> top_work_;
  std::set<Hash256> asked_;
  std::map<Hash256, int> failed_;
  std::size_t fetching_ = 0;
  std::size_t tip_here_ = 0;  // aggregates of the newest certificate, likewise
  std::map<net::NodeId, RoundChange> changes_;
  std::map<net::NodeId, std::uint64_t> sequences_;
  std::uint64_t sequence_ = 0;
  std::deque<Duration> durations_;

  RoundView counters_;
  std::unique_ptr<TimerHandle> timer_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace neuroshard::rounds
