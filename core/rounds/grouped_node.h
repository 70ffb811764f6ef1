// A node's part in rounds of two levels (SPEC §7; grouped_body.h has the protocol's argument): what
// RoundNode is for up to 16 members, for 17 to 16,384. In a round it
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
#include <unordered_map>
#include <vector>

#include "core/rounds/detail/computations.h"
#include "core/rounds/grouped_commons.h"
#include "core/rounds/grouped_messages.h"
#include "core/rounds/participant.h"

namespace neuroshard::rounds {

struct GroupedOptions : ParticipantOptions {
  std::optional<ChainBase> base;                  // where the chain begins, without a genesis
                                                  // and without one handed over
  Duration group_wait = std::chrono::seconds(6);  // that a leader waits for results after the first
  AgreementOptions group{std::chrono::seconds(10), std::chrono::minutes(2)};
  AgreementOptions top{std::chrono::seconds(30), std::chrono::minutes(4)};
  std::size_t fetches = 8;  // aggregates at a time
};

class GroupedNode final : public RoundParticipant {
 public:
  // known: a state, of the round that it names. commons outlives it.  Threads: the executor's, all members.
  GroupedNode(RoundServices services, GroupedCommons& commons, GroupedOptions options, KnownState known,
              std::uint64_t seed, RoundCertified certified);
  ~GroupedNode() override;
  const Deal& deal() const { return *deal_; }

 private:
  class Level;
  struct Aggregate {
    std::uint64_t round = 0;
    Payload payload;
  };
  // How far the aggregates of a body are. Thousands of members ask for hundreds each, and look again whenever
  // one comes: so nothing is looked for twice.
  struct Gathering {
    std::size_t here = 0;   // so many from the first on are here
    std::size_t asked = 0;  // so many are here or asked for
    std::uint64_t failures = 0;
  };
  struct Content {
    Payload bytes;
    std::shared_ptr<const GroupedBody> body;
    MonotonicTime came{};
    bool tokens_right = false, has_own_group = false;
    Gathering gathering;
  };
  struct Bundle {
    std::map<std::uint16_t, crypto::Signature> signatures;
    std::size_t sent = 0;
    std::optional<std::ptrdiff_t> place;  // among those that were sent
  };

  // grouped_node.cpp: life, training
  void advance() override;
  void open_round() override;
  void open_agreements();
  bool is_grouped() const override { return true; }
  bool begin_history() override;
  GroupedCommons& commons() override { return commons_; }
  void check_close();
  void looks_every_tick() override { pump_bundles(true); }
  bool is_member() const override { return deal_ && index_ < roster().members.size(); }
  const Roster& roster() const { return *deal_->roster; }  // of the round that is made
  const std::vector<RoundMember>& group() const override { return *deal_->groups[group_]; }
  std::size_t group_count_now() const override { return deal_ ? deal_->groups.size() : 1; }
  std::size_t leader() const override;
  std::uint32_t view_number() const override;
  void send(std::uint32_t key, const RoundItem& item, const std::vector<net::NodeId>& to) override;
  KeptVotes votes() const override;
  void take_votes(KeptVotes votes) override;
  bool takes_part() const override;
  bool tells_certificate() const override;
  std::vector<net::NodeId> told_of_change() override;

  // grouped_group.cpp: the sub-group's agreement
  Finding examine_group(const RoundBody& body);
  void review_group();
  void try_group_body();
  void group_certified(const RoundQuorum& certificate);
  void aggregate_of(const std::vector<RoundContributor>& contributors,
                    std::function<void(const Expected<GroupAggregate>&)> done);
  Verdict on_group_item(const net::NodeId& from, ByteSpan bytes);
  void tell_proof(const EvidencePost& evidence, const net::NodeId& from) override;
  void liar_found() override;

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
  const Content& keep_content(const Hash256& hash, Bytes bytes, std::shared_ptr<const GroupedBody> body);
  bool body_is_fair(const Content& content, bool locked) const;
  bool fetch_aggregates(const GroupedBody& body, Gathering* gathering);
  void fetch_aggregate(std::uint16_t number, const RoundQuorum& certificate);
  void anchor_of(const GroupedBody& body, std::function<void(const SharedStep&)> done);
  Verdict on_proposal(GroupedProposal post);
  Verdict on_votes(const net::NodeId& from, const CollectedVotes& post);
  Verdict on_result(GroupResult result);

  // grouped_sync.cpp: answering, catching up
  PostAnswer on_post(const net::NodeId& from, ByteSpan bytes) override;
  Verdict dispatch(const net::NodeId& from, GroupedPost post);
  Verdict on_grouped_proposal(const net::NodeId& from, GroupedProposal& post);
  Payload other_payload(const Hash256& hash) const override;
  Verdict on_certificate(const net::NodeId& from, const RoundQuorum& quorum);
  void tell_certificate(const Deal& deal, std::uint16_t group, const RoundQuorum& quorum);
  bool group_is_absent(const RoundChain& chain) const override;
  std::vector<net::NodeId> asked_how_far(bool back) override;
  void heard_view(const net::NodeId& id, std::uint32_t view) override;
  std::vector<net::NodeId> some_members(std::size_t count);

  // grouped_state.cpp: towards the state of the newest certificate
  void settle_state() override;
  bool step_to_tip();
  void forget_computed() override;

  GroupedCommons& commons_;
  const GroupedOptions options_;

  std::shared_ptr<const Deal> deal_;
  std::size_t index_ = 0;  // in the roster; its size: no member
  std::uint16_t group_ = 0;
  std::unique_ptr<Level> group_level_, top_level_;
  AgreementMemory group_memory_, top_memory_;
  Payload kept_content_;  // of what the kept lock names
  std::unordered_map<Hash256, Aggregate, net::NodeIdHash> aggregates_;
  std::map<Hash256, Content> contents_;
  std::map<std::uint16_t, RoundQuorum> results_;  // heard of as a leader
  std::optional<RoundQuorum> own_result_;
  MonotonicTime own_result_at_{}, first_result_at_{};
  std::set<std::uint16_t> unreachable_;  // sub-groups whose aggregates nobody gave
  std::map<std::pair<VoteStep, std::uint32_t>, std::map<Hash256, Bundle>> bundles_;
  std::optional<GroupedProposal> proposal_;  // this node's, until its prepare is signed
  std::optional<std::uint32_t> spoke_in_;    // the view in which the result was brought
  bool want_group_body_ = false, making_group_body_ = false, want_top_body_ = false, making_top_body_ = false,
       step_failed_ = false;
  Computations<Expected<GroupAggregate>> group_work_;
  Computations<SharedStep> top_work_;
  std::map<Hash256, int> failed_;
  std::size_t fetching_ = 0;
  std::uint64_t failures_ = 0;  // of fetches: what was asked for is to be asked for again
  Gathering tip_gathering_;     // of the newest certificate's body
};

}  // namespace neuroshard::rounds
