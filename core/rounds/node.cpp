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
  tell_certificate();
  if (!is_member() || unfit() || (abstain_ && round_ <= *abstain_)) return;
  agreement_.emplace(
      RoundAgreement::Setup{network_, options_.rules.slot, round_, chain_->tip_hash(), group()},
      options_.agreement, services_.key, services_.executor, static_cast<AgreementHost&>(*this), memory_);
}

// Votes are said no more once their round is certified, and who missed some must not depend on asking: so
// the certificate goes to whoever has not taken all of this node's words. Of one that lets this node go the
// others may need its word.
void RoundNode::tell_certificate() {
  if (tip_round() == 0 || chain_->tip_grouped()) return;
  const CertificatePost post{chain_->tip_link().certificate};
  if (leaving_ && !is_member()) return outbox_.put(certificate_key, post, others());
  std::erase_if(untold_, [&members = post.certificate.body.members](const net::NodeId& id) {
    return member_index(members, id) == members.size();
  });
  if (!untold_.empty()) outbox_.put_later(certificate_key, post, untold_);
}

bool RoundNode::tells_certificate() const {
  return outbox_.holds(certificate_key);
}

void RoundNode::check_close() {
  const MonotonicTime now = services_.clock.monotonic_now();
  const std::uint32_t steps = services_.learner.progress().steps;
  if (!own_ && !boundary_asked_ && trained_enough(steps)) contribute();
  // Who began after the others had ended gives what it has as soon as it has something.
  if (closed_ && !own_ && !boundary_asked_ && steps >= least_steps(round_steps())) contribute();
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
