#include "core/rounds/node.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/check.h"
#include "core/crypto/hash.h"
#include "core/rounds/detail/outbox_keys.h"

namespace neuroshard::rounds {

RoundNode::RoundNode(RoundServices services, RoundOptions options, KnownState known, std::uint64_t seed,
                     Certified certified)
    : services_(services),
      options_(std::move(options)),
      self_(crypto::node_id(services.key.public_key())),
      network_(options_.rules.network),
      rng_(seed),
      on_certified_(std::move(certified)),
      outbox_(services.caller, services.peers, services.clock, options_.outbox,
              [this](const net::NodeId& from, const PostAnswer& answer) {
                // Somebody is further: catch up with that one.
                if (chain_ && answer.round > round_) {
                  if (const auto contact = services_.peers.find(from)) sync_from(*contact);
                }
              }),
      fetcher_(services.caller, services.peers, services.executor, options_.fetch),
      initial_(std::move(known)) {
  NS_CHECK(initial_.state && initial_.state->weights.size() == options_.rules.values);
}

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
  for (auto at = changes_.begin(); at != changes_.end();)
    at = round_ - std::min(round_, at->second.round) > change_life ? changes_.erase(at) : std::next(at);
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
  // Contributed before a restart: never a second time.
  if (own_ && contributions_->take(*own_) == Verdict::Taken) {
    ContributionPost post{*own_, {}};
    if (kept_payload_.size() <= max_inline_payload) post.payload = kept_payload_;
    outbox_.put(contribution_key, post, others());
    if (kept_payload_.empty() || !contributions_->take_payload(std::exchange(kept_payload_, {})))
      ask_for_payload(self_);
  }
}

Carry RoundNode::carry() const {
  const bool delayed = options_.sync == RoundSync::Delayed;
  if (repairing_ || !(provisional_ || delayed)) return Carry::Nothing;
  // What was sent and left out is dropped, unless it was all that this node had for a long time.
  return counted_ || (given_ && !provisional_) ? Carry::SinceBoundary : Carry::Everything;
}

Duration RoundNode::deadline() const {
  if (durations_.empty()) return options_.first_deadline;
  std::vector<Duration> sorted(durations_.begin(), durations_.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted[(sorted.size() - 1) / 2] * 5 / 4;
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
  closed_ = true;
  closed_at_ = now;
  // A shorter first round says what a whole one would have taken.
  if (!early) durations_.push_back((now - opened_) * options_.rules.inner_steps / round_steps());
  if (durations_.size() > 3) durations_.pop_front();
  agreement_->start();
}

// What this node holds is held against the certificate first: a delta from another anchor helps nobody.
void RoundNode::check_own_state(std::function<void()> when_right) {
  if (!state_) return;
  auto hash = std::make_shared<Hash256>();
  const auto identity = anchor_identity(network_, options_.outer, options_.rules.slot, state_round_);
  services_.work.run(
      [hash, identity, state = state_] { *hash = hash_of(identity, *state); },
      guarded([this, hash, state = state_, round = state_round_, when_right = std::move(when_right)] {
        if (!chain_ || state != state_) return;
        if (*hash == state_hash_) {
          when_right();
          return;
        }
        ++counters_.corruptions;
        services_.logger.warning("rounds",
                                 fmt::format("this node's anchor of round {} is not the certified one: it "
                                             "is fetched from other members",
                                             round));
        state_hash_ = *hash;
        state_.reset();
        state_checked_ = false;
        repairing_ = true;
        computing_.clear();
        training_ = false;
        served_.clear();
        settle_state();
      }));
}

void RoundNode::contribute() {
  boundary_asked_ = true;
  check_own_state([this, round = round_] {
    if (round != round_ || own_) return;
    auto given = guarded([this, round](Expected<RoundLearner::Boundary> boundary) {
      if (round != round_ || own_) return;
      if (!boundary.ok()) {
        services_.logger.warning("rounds", boundary.error().describe());
        return;
      }
      send_contribution(std::move(*boundary));
      advance();
    });
    services_.learner.boundary(
        options_.sync == RoundSync::Delayed ? AfterBoundary::TrainOn : AfterBoundary::Rest, std::move(given));
  });
}

void RoundNode::send_contribution(RoundLearner::Boundary boundary) {
  if (boundary.work.steps < least_steps(round_steps()) || boundary.work.tokens == 0) return;
  Contribution c;
  c.slot = options_.rules.slot;
  c.round = round_;
  c.base = chain_->tip().anchor;
  c.steps = boundary.work.steps;
  c.tokens = boundary.work.tokens;
  c.codec = options_.rules.codec.codec;
  c.payload_bytes = boundary.payload.size();
  c.payload = crypto::sha256(boundary.payload);
  c.sequence = ++sequence_;
  sign_contribution(c, services_.key, network_);
  own_ = c;
  given_ = true;
  contributed_at_ = services_.clock.monotonic_now();
  if (const Verdict verdict = contributions_->take(c); verdict != Verdict::Taken) {
    services_.logger.warning("rounds",
                             fmt::format("this node's own contribution is refused: {}", to_string(verdict)));
    return;
  }
  ContributionPost post{c, {}};
  if (boundary.payload.size() <= max_inline_payload) post.payload = boundary.payload;
  save_payload(boundary.payload);
  contributions_->take_payload(std::move(boundary.payload));
  // On the disk before it leaves: after a restart there must not be another one.
  save(guarded([this, post = std::move(post)] {
    if (post.contribution.round == round_) outbox_.put(contribution_key, post, others());
  }));
}

void RoundNode::go_provisional() {
  const MonotonicTime now = services_.clock.monotonic_now();
  if (provisional_ || !closed_ || now - closed_at_ < options_.provisional_after) return;
  provisional_ = true;
  ++counters_.provisional;
  services_.logger.info("rounds", fmt::format("round {}: more than a third of {} members are out of reach; "
                                              "this node trains on by itself until they are back",
                                              round_, chain_->members().size()));
  services_.learner.go_on();
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
  const bool current = state_ && state_round_ == chain_->tip().round && state_checked_;
  status.phase = !current         ? (counters_.corruptions > 0 ? RoundPhase::Repairing : RoundPhase::Joining)
                 : provisional_   ? RoundPhase::Provisional
                 : !status.member ? RoundPhase::Joining
                 : closed_        ? RoundPhase::Agreeing
                 : own_           ? RoundPhase::Collecting
                                  : RoundPhase::Training;
  return status;
}

RoundView RoundNode::view() const {
  RoundView view = counters_;
  const RoundStatus now = status();
  view.phase = now.phase;
  view.round = now.round;
  view.own_anchor = now.anchor;
  view.tokens = now.tokens;
  view.member = now.member;
  view.view = now.view;
  if (chain_) {
    view.anchor = chain_->tip().anchor;
    view.members = chain_->members().size();
  }
  view.bytes_sent += outbox_.bytes_sent();
  view.bytes_received += fetcher_.bytes_received();
  return view;
}

}  // namespace neuroshard::rounds
