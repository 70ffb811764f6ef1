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
#include "core/rounds/sync.h"

namespace neuroshard::rounds {

struct RoundOptions : ParticipantOptions {
  RoundSync sync = RoundSync::Plain;
  std::uint32_t first_steps = 0;  // of the first round; 0: H, as all others have (fragments.h)
  // Known beforehand; none: that of the first node that answers, or one of this node alone.
  std::optional<RoundBody> genesis;
  // No node answers so long: it begins alone. Soon when nobody is known who could (RoundPeers::nobody).
  Duration found_alone_after = std::chrono::seconds(15);
  Duration found_alone_soon = std::chrono::seconds(3);
  AgreementOptions agreement;
};

class RoundNode final : public RoundParticipant, private AgreementHost {
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

  RoundStatus status() const override;
  const RoundChain* chain() const { return chain_ ? &*chain_ : nullptr; }

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
  void tick();
  void advance() override;
  void open_round();
  void begin_training();
  Carry carry() const;
  void check_close();
  std::uint32_t round_steps() const override {
    return round_ == 1 && options_.first_steps != 0 ? options_.first_steps : options_.rules.inner_steps;
  }
  AfterBoundary after_boundary() const override {
    return options_.sync == RoundSync::Delayed ? AfterBoundary::TrainOn : AfterBoundary::Rest;
  }
  std::uint64_t tip_round() const override { return chain_->tip().round; }
  const Hash256& tip_anchor() const override { return chain_->tip().anchor; }
  const std::vector<RoundMember>& group() const override { return chain_->members(); }
  std::size_t member_count() const override { return chain_ ? chain_->members().size() : 0; }
  std::size_t leader() const override { return agreement_->leader(agreement_->view()); }
  void send(std::uint32_t key, const RoundItem& item, const std::vector<net::NodeId>& to) override {
    outbox_.put(key, item, to);
  }

  // node_agree.cpp: AgreementHost, judging, computing
  void broadcast(const RoundItem& item) override;
  void remember(const AgreementMemory& memory, std::function<void()> then) override;
  void judge(const RoundBody& body) override;
  void make_body() override;
  void certified(const RoundCertificate& certificate) override;
  void review();
  bool body_follows(const RoundBody& body) const;
  Finding examine(const RoundBody& body);
  void try_make_body();
  bool contributions_are_late();
  void compute(const std::vector<RoundContributor>& contributors, Computed done);

  // node_sync.cpp: answering and catching up
  PostAnswer on_post(const net::NodeId& from, ByteSpan bytes) override;
  Expected<Bytes> on_chain(ByteSpan request) override;
  void poll();
  void consider(const net::Contact& from, const RoundStatus& status);
  bool may_give_up() const;
  void catch_up_with(const net::NodeId& id) override;
  // afresh: from the genesis on, to take another history's place.
  void sync_from(const net::Contact& from, bool afresh = false);
  void take_chain(const net::Contact& from, bool afresh, Expected<Bytes> answer);
  void give_up_history();
  Expected<void> take_certificate(const RoundCertificate& certificate);
  void found_alone();

  // node_state.cpp: towards the state of the newest certificate
  void settle_state() override;
  bool take_known_state();
  bool step_to_tip();
  void stepped(std::uint64_t round, const Expected<StepResult>& step);
  std::vector<net::NodeId> sources();
  void adopt(Anchor state, std::vector<Hash256> leaves, const StepResult* step) override;
  void own_state_is_wrong(const Hash256& computed) override;

  // node_members.cpp
  bool is_in(const net::NodeId& id) const override;
  bool goes(const net::NodeId& id) const;
  bool round_ends_early() const;
  void post_change();
  void train_outside();

  // node_memory.cpp
  void restore();
  void restore_votes();
  void save(std::function<void()> then) override;
  void save_chain();

  const RoundOptions options_;
  const Certified on_certified_;

  std::optional<RoundChain> chain_;
  std::optional<RoundAgreement> agreement_;
  AgreementMemory memory_;
  bool memory_lost_ = false;       // what was kept can't be read
  std::uint64_t saved_chain_ = 0;  // 1 + its newest round
  bool want_body_ = false, making_body_ = false, leaving_ = false;
  bool greeted_ = false;    // the members, since its start
  bool outside_ = false;    // trains by itself, being no member
  bool repairing_ = false;  // what was trained is from a broken anchor
  MonotonicTime started_{}, left_at_{}, heard_{}, fetched_at_{};
  std::uint64_t fetched_bytes_ = 0;
  std::map<Hash256, Judging> judging_;
  std::map<Hash256, std::shared_ptr<Computing>> computing_;
};

}  // namespace neuroshard::rounds
