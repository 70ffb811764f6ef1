#include "core/rounds/node.h"

#include <algorithm>

#include "core/rounds/detail/outbox_keys.h"

namespace neuroshard::rounds {

RoundNode::RoundNode(RoundServices services, RoundOptions options, KnownState known, std::uint64_t seed,
                     RoundCertified certified)
    : RoundParticipant(services, options, std::move(known), seed, std::move(certified)),
      options_(std::move(options)),
      commons_(network_, 0, options_.group_members) {}

RoundNode::~RoundNode() = default;

bool RoundNode::begin_history() {
  if (options_.genesis) chain_.emplace(network_, *options_.genesis);
  return chain_.has_value();
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
  agreement_.reset();
  judging_.clear();
  want_body_ = making_body_ = false;
  reset_round();
  ContributionRules rules = options_.rules;
  rules.inner_steps = round_steps();
  contributions_.emplace(rules, round_, tip_anchor(), group(), sequences_);
  // The others may need this node's word for the certificate that lets it go.
  if (leaving_ && !is_member() && !chain_->tip_grouped())
    outbox_.put(certificate_key, CertificatePost{chain_->tip_link().certificate}, others());
  if (!is_member() || unfit() || (abstain_ && round_ <= *abstain_)) return;
  agreement_.emplace(
      RoundAgreement::Setup{network_, options_.rules.slot, round_, chain_->tip_hash(), group()},
      options_.agreement, services_.key, services_.executor, static_cast<AgreementHost&>(*this), memory_);
}

bool RoundNode::tells_certificate() const {
  return outbox_.holds(certificate_key);
}

void RoundNode::check_close() {
  const MonotonicTime now = services_.clock.monotonic_now();
  const std::uint32_t steps = services_.learner.progress().steps;
  if (!own_ && !boundary_asked_ && trained_enough(steps)) contribute();
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

}  // namespace neuroshard::rounds
