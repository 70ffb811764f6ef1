#include "core/rounds/node.h"

#include <algorithm>

#include "core/rounds/detail/outbox_keys.h"

namespace neuroshard::rounds {

RoundNode::RoundNode(RoundServices services, RoundOptions options, KnownState known, std::uint64_t seed,
                     Certified certified)
    : RoundParticipant(services, options, std::move(known), seed),
      options_(std::move(options)),
      on_certified_(std::move(certified)) {}

RoundNode::~RoundNode() = default;

void RoundNode::start() {
  started_ = next_poll_ = services_.clock.monotonic_now();
  restore();
  if (!chain_ && options_.genesis) chain_.emplace(network_, *options_.genesis);
  if (chain_ && initial_.certificate && initial_.certificate->body.round > chain_->tip().round) {
    const auto added = chain_->add(*initial_.certificate);
    if (!added.ok()) services_.logger.warning("rounds", added.error().describe());
  }
  if (chain_) {
    open_round();
    settle_state();
  }
  tick();
}

void RoundNode::tick() {
  outbox_.pump();
  poll();
  advance();
  timer_ = services_.executor.post_after(options_.tick, [this] { tick(); });
}

void RoundNode::advance() {
  if (!chain_) {
    found_alone();
    return;
  }
  settle_state();
  post_change();
  train_outside();
  if (!agreement_ || !training_) return;
  check_close();
  go_provisional();
  review();
  try_make_body();
}

// A certificate was added, or the first ones: what comes next.
void RoundNode::open_round() {
  round_ = chain_->tip().round + 1;
  if (contributions_) sequences_ = contributions_->sequences();
  previous_contributions_ = std::move(contributions_);
  ContributionRules rules = options_.rules;
  rules.inner_steps = round_steps();
  contributions_.emplace(rules, round_, chain_->tip().anchor, chain_->members(), sequences_);
  agreement_.reset();
  outbox_.clear();
  judging_.clear();
  asked_.clear();
  training_ = boundary_asked_ = closed_ = evidence_sent_ = false;
  want_body_ = making_body_ = false;
  if (memory_round_ > round_) {
    // It voted in a later round, so this one was certified, and what it voted here is forgotten.
    abstain_ = std::max(abstain_.value_or(0), memory_round_ - 1);
  } else if (memory_round_ < round_) {
    memory_ = {};
    memory_round_ = round_;
    own_.reset();
  }
  forget_old_changes();
  if (memory_lost_ && !abstain_) abstain_ = round_;
  // The wish names the newest round, and was just cleared.
  if (!is_member() || leaving_) next_change_ = {};
  // The others may need this node's word for the certificate that lets it go.
  if (leaving_ && !is_member())
    outbox_.put(certificate_key, CertificatePost{chain_->tip_certificate()}, others());
  if (!is_member() || (abstain_ && round_ <= *abstain_)) return;
  agreement_.emplace(
      RoundAgreement::Setup{network_, options_.rules.slot, round_, chain_->tip_hash(), chain_->members()},
      options_.agreement, services_.key, services_.executor, static_cast<AgreementHost&>(*this), memory_);
}

// The state of the newest certificate is here.
void RoundNode::begin_training() {
  if (training_ || !is_member()) return;
  training_ = true;
  boundary_asked_ = false;
  opened_ = services_.clock.monotonic_now();
  // Where rounds overlap, one goes from delta to delta.
  if (options_.sync == RoundSync::Delayed && given_ && !provisional_) opened_ = contributed_at_;
  services_.learner.start({round_, state_, carry(), counted_});
  provisional_ = counted_ = outside_ = given_ = repairing_ = false;
  contribute_again();
}

Carry RoundNode::carry() const {
  const bool delayed = options_.sync == RoundSync::Delayed;
  if (repairing_ || !(provisional_ || delayed)) return Carry::Nothing;
  // What was sent and left out is dropped, unless it was all that this node had for a long time.
  return counted_ || (given_ && !provisional_) ? Carry::SinceBoundary : Carry::Everything;
}

void RoundNode::check_close() {
  const MonotonicTime now = services_.clock.monotonic_now();
  const std::uint32_t steps = services_.learner.progress().steps;
  if (!own_ && !boundary_asked_ && steps >= round_steps()) contribute();
  if (closed_) return;
  const std::size_t members = chain_->members().size();
  const bool all = contributions_->announced() == members;
  const bool early =
      round_ends_early() && (contributions_->announced() > 0 || steps >= least_steps(round_steps()));
  if (!all && !early && contributions_->full() < quorum_size(members) && now - opened_ < deadline()) return;
  if (!own_ && !boundary_asked_ && steps >= least_steps(round_steps())) contribute();
  close(now, !early);
  agreement_->start();
}

RoundStatus RoundNode::status() const {
  RoundStatus status;
  if (!chain_) return status;
  status.round = chain_->tip().round;
  status.tip = chain_->tip_hash();
  status.genesis = chain_->genesis();
  status.tokens = chain_->tip().tokens;
  status.anchor = state_hash_;
  status.view = agreement_ ? agreement_->view() : 0;
  status.member = is_member();
  status.shared_rounds = chain_->shared_rounds();
  status.phase = phase(provisional_, status.member);
  return status;
}

}  // namespace neuroshard::rounds
