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

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/rounds/participant.h"

namespace neuroshard::rounds {

struct RoundOptions : ParticipantOptions {
  std::uint32_t first_steps = 0;  // of the first round; 0: H, as all others have (fragments.h)
  // No node answers so long: it begins alone. Soon when nobody is known who could (RoundPeers::nobody).
  Duration found_alone_after = std::chrono::seconds(15);
  Duration found_alone_soon = std::chrono::seconds(3);
  AgreementOptions agreement;
};

class RoundNode final : public RoundParticipant, private AgreementHost {
 public:
  // Threads: the executor's, all members.
  RoundNode(RoundServices services, RoundOptions options, KnownState known, std::uint64_t seed,
            RoundCertified certified);
  ~RoundNode() override;

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

  // node.cpp: life, training
  void advance() override;
  void open_round() override;
  bool is_grouped() const override { return false; }
  bool begin_history() override;
  GroupedCommons& commons() override { return commons_; }
  void check_close();
  std::uint32_t round_steps() const override {
    return round_ == 1 && options_.first_steps != 0 ? options_.first_steps : options_.rules.inner_steps;
  }
  const std::vector<RoundMember>& group() const override { return chain_->members(); }
  std::size_t leader() const override { return agreement_->leader(agreement_->view()); }
  std::uint32_t view_number() const override { return agreement_ ? agreement_->view() : 0; }
  void send(std::uint32_t key, const RoundItem& item, const std::vector<net::NodeId>& to) override {
    outbox_.put(key, item, to);
  }
  KeptVotes votes() const override { return {memory_round_, sequence_, own_, false, memory_, {}, nullptr}; }
  void take_votes(KeptVotes votes) override { memory_ = std::move(votes.first); }
  bool takes_part() const override { return agreement_.has_value(); }
  bool tells_certificate() const override;
  void tell_certificate();

  // node_agree.cpp: AgreementHost, judging, computing
  void broadcast(const RoundItem& item) override;
  void remember(const AgreementMemory& memory, std::function<void()> then) override;
  void judge(const RoundBody& body) override;
  void make_body() override;
  void certified(const RoundCertificate& certificate) override;
  bool is_liar(std::size_t member) const override {
    const std::vector<RoundMember>& members = chain_->members();
    return member < members.size() && RoundParticipant::is_liar(members[member].id);
  }
  void liar_found() override {
    if (agreement_) agreement_->leader_may_be_liar();
  }
  void review();
  bool body_follows(const RoundBody& body) const;
  Finding examine(const RoundBody& body);
  void try_make_body();
  void compute(const std::vector<RoundContributor>& contributors, Computed done);

  // node_sync.cpp: answering
  PostAnswer on_post(const net::NodeId& from, ByteSpan bytes) override;
  std::vector<net::NodeId> asked_how_far(bool back) override;
  void found_alone();

  // node_state.cpp: towards the state of the newest certificate
  void settle_state() override;
  bool step_to_tip();
  bool waits_for_payloads();
  void stepped(std::uint64_t round, const Expected<StepResult>& step);
  std::vector<net::NodeId> sources();
  void forget_computed() override { computing_.clear(); }
  // Who trained the round before lacks little of the state; who comes back lacks all of it.
  bool wants_payloads() const override {
    return chain_ && (holds_tip() || (trained_before_ && state_checked_ && state_round_ + 1 == tip_round()));
  }
  std::optional<std::uint64_t> bytes_of_step() const override;

  std::vector<net::NodeId> told_of_change() override { return others(); }

  const RoundOptions options_;
  GroupedCommons commons_;  // of rounds of two levels that the chain passes through

  std::optional<RoundAgreement> agreement_;
  AgreementMemory memory_;
  bool want_body_ = false, making_body_ = false;
  std::map<Hash256, Judging> judging_;
  std::map<Hash256, std::shared_ptr<Computing>> computing_;
};

}  // namespace neuroshard::rounds
