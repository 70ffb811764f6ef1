#include "core/rounds/participant.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/check.h"
#include "core/crypto/hash.h"
#include "core/crypto/merkle.h"
#include "core/rounds/detail/outbox_keys.h"

namespace neuroshard::rounds {
namespace {

constexpr Duration fetch_pause = std::chrono::seconds(2);

}  // namespace

RoundParticipant::RoundParticipant(RoundServices services, const ParticipantOptions& options,
                                   KnownState known, std::uint64_t seed, RoundCertified certified)
    : services_(services),
      common_(options),
      on_certified_(std::move(certified)),
      self_(crypto::node_id(services.key.public_key())),
      network_(options.rules.network),
      rng_(seed),
      outbox_(services.caller, services.peers, services.clock, options.outbox,
              [this](const net::NodeId& from, const PostAnswer& answer) {
                if (answer.round >= round_) outbox_.drop(certificate_key, from);
                if (answer.round > round_) catch_up_with(from);
              }),
      fetcher_(services.caller, services.peers, services.executor, services.clock, options.fetch) {
  initial_ = std::move(known);
  NS_CHECK(!initial_.state || initial_.state->weights.size() == options.rules.values);
}

RoundParticipant::~RoundParticipant() = default;

void RoundParticipant::start() {
  started_ = next_poll_ = services_.clock.monotonic_now();
  restore();
  if (!chain_) begin_history();
  if (chain_ && initial_.certificate && initial_.certificate->certificate.body.round > chain_->tip().round) {
    const auto added = chain_->add(*initial_.certificate, commons());
    if (!added.ok()) services_.logger.warning("rounds", added.error().describe());
  }
  if (chain_) {
    open_round();
    settle_state();
  }
  tick();
}

void RoundParticipant::start(RoundOngoing ongoing) {
  static_cast<RoundOngoing&>(*this) = std::move(ongoing);
  next_poll_ = services_.clock.monotonic_now();
  open_round();
  settle_state();
  tick();
}

RoundOngoing RoundParticipant::hand_over() {
  retired_ = true;
  alive_.reset();  // nothing that is under way comes back to it
  counters_.bytes_sent += outbox_.bytes_sent();
  counters_.bytes_received += fetcher_.bytes_received();
  RoundOngoing ongoing = std::move(static_cast<RoundOngoing&>(*this));
  chain_.reset();
  return ongoing;
}

void RoundParticipant::say_unfit() {
  if (std::exchange(unfit_said_, true)) return;
  static_cast<void>(services_.executor.post(guarded([this] {
    unfit_said_ = false;
    if (unfit()) unfit_told_();
  })));
}

void RoundParticipant::tick() {
  outbox_.pump();
  if (!retired_) {
    poll();
    advance();
    looks_every_tick();
    note_progress();
  }
  timer_ = services_.executor.post_after(common_.tick, [this] { tick(); });
}

// A certificate was added, or the first ones: what is the same for whoever makes the next round.
void RoundParticipant::reset_round() {
  round_ = tip_round() + 1;
  if (contributions_)
    for (const auto& [id, sequence] : contributions_->sequences()) sequences_[id] = sequence;
  previous_contributions_ = std::move(contributions_);
  for (auto at = proven_.begin(); at != proven_.end();) at = is_in(*at) ? std::next(at) : proven_.erase(at);
  untold_ = outbox_.untold();
  outbox_.clear();
  asked_before_ = std::exchange(asked_, {});
  payload_lost_ = false;
  // Those who have the state of the round before this one hold it until the next certificate.
  const std::uint64_t missing = fetcher_.missing(fetching_state_);
  if (!goes_on_fetching() && fetcher_.abandon(fetching_state_)) {
    overtaken_ = overtaken_ || 2 * missing <= state_bytes();
    settling_ = false;
  }
  // The pause was for a state that could not be had; where rounds are short this one can't, either, after it.
  next_fetch_ = {};
  training_ = boundary_asked_ = closed_ = false;
  if (memory_round_ > round_) {
    // It voted in a later round, so this one was certified, and what it voted here is forgotten.
    abstain_ = std::max(abstain_.value_or(0), memory_round_ - 1);
  } else if (memory_round_ < round_) {
    take_votes({});
    kept_votes_.reset();
    memory_round_ = round_;
    own_.reset();
  } else if (kept_votes_ && kept_votes_->grouped == is_grouped()) {
    take_votes(*std::exchange(kept_votes_, std::nullopt));
  }
  forget_old_changes();
  forget_returners();
  if (memory_lost_ && !abstain_) abstain_ = round_;
  // The wish names the newest round, and was just cleared.
  if (!is_member() || leaving_) next_change_ = {};
  trained_before_ = trained_before_ && is_member();
  tell_proofs_again();
}

// The state of the newest certificate is here.
void RoundParticipant::begin_training() {
  if (unfit()) return say_unfit();
  if (training_ || !is_member()) return;
  training_ = true;
  on_time_ = std::exchange(trained_before_, true) || tip_round() == 0;
  boundary_asked_ = false;
  opened_ = services_.clock.monotonic_now();
  // Where rounds overlap, one goes from delta to delta.
  if (common_.sync == RoundSync::Delayed && given_ && !provisional_)
    opened_ = contributed_at_;
  else if (2 * contributions_->announced() > group().size())
    on_time_ = false;  // most have ended theirs already
  services_.learner.start({round_, state_, carry(), counted_});
  begun_ = true;
  provisional_ = counted_ = outside_ = given_ = repairing_ = group_absent_ = false;
  contribute_again();
}

Carry RoundParticipant::carry() const {
  const bool delayed = common_.sync == RoundSync::Delayed;
  if (repairing_ || !(provisional_ || group_absent_ || delayed)) return Carry::Nothing;
  // What was sent and left out is dropped, unless it was all that this node had for a long time, or nobody
  // of its sub-group was heard.
  return counted_ || (given_ && !provisional_ && !group_absent_) ? Carry::SinceBoundary : Carry::Everything;
}

bool RoundParticipant::is_in(const net::NodeId& id) const {
  return chain_ && roster_index(*chain_->roster(), id) < chain_->members().size();
}

std::vector<net::NodeId> RoundParticipant::others() const {
  std::vector<net::NodeId> ids;
  for (const RoundMember& member : group())
    if (member.id != self_) ids.push_back(member.id);
  return ids;
}

outer::AnchorIdentity RoundParticipant::identity(std::uint64_t round) const {
  return anchor_identity(network_, common_.outer, common_.rules.slot, round);
}

Duration RoundParticipant::deadline() const {
  if (durations_.empty()) return deadline_by_own_pace();
  std::vector<Duration> sorted(durations_.begin(), durations_.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted[(sorted.size() - 1) / 2] * 5 / 4;
}

// No round is measured yet, but what this node needed for its own part of this one. Who needs four times as
// long gives what it has; and two of three whose third has died need not wait for half an hour until they
// train on.
Duration RoundParticipant::deadline_by_own_pace() const {
  const bool known = boundary_asked_ && own_ && own_->steps <= round_steps() + round_steps() / 4;
  if (!known) return common_.first_deadline;
  const Duration whole = (contributed_at_ - opened_) * common_.rules.inner_steps / round_steps();
  return std::min(common_.first_deadline, std::max(common_.provisional_after, 4 * whole));
}

void RoundParticipant::close(MonotonicTime now, bool as_measure) {
  closed_ = true;
  closed_at_ = now;
  enough_at_.reset();
  services_.learner.closed();
  // A shorter first round says what a whole one would have taken.
  if (as_measure && on_time_)
    durations_.push_back((now - opened_) * common_.rules.inner_steps / round_steps());
  if (durations_.size() > 3) durations_.pop_front();
}

void RoundParticipant::contribute() {
  boundary_asked_ = true;
  check_own_state([this, round = round_] {
    if (round != round_ || own_) return;
    services_.learner.boundary(after_boundary(),
                               guarded([this, round](Expected<RoundLearner::Boundary> boundary) {
                                 if (round != round_ || own_) return;
                                 if (!boundary.ok()) {
                                   services_.logger.warning("rounds", boundary.error().describe());
                                   return;
                                 }
                                 send_contribution(std::move(*boundary));
                                 advance();
                               }));
  });
}

void RoundParticipant::send_contribution(RoundLearner::Boundary boundary) {
  if (boundary.work.steps < least_steps(round_steps()) || boundary.work.tokens == 0) return;
  Contribution c;
  c.slot = common_.rules.slot;
  c.round = round_;
  c.base = tip_anchor();
  c.steps = boundary.work.steps;
  c.tokens = boundary.work.tokens;
  c.codec = common_.rules.codec.codec;
  c.payload_bytes = boundary.payload.size();
  c.payload = crypto::sha256(boundary.payload);
  c.sequence = ++sequence_;
  sign_contribution(c, services_.key, network_);
  own_ = c;
  given_ = true;
  contributed_at_ = services_.clock.monotonic_now();
  const auto told = [this](Expected<void> saved) {
    if (saved.ok()) return;
    ++counters_.failed_saves;
    services_.logger.error("rounds", saved.error().describe());
  };
  if (!boundary.memory.empty())
    services_.store.save(RoundStore::Record::Learner, std::move(boundary.memory), guarded(told));
  services_.store.save(RoundStore::Record::Payload, boundary.payload, guarded(told));
  // On the disk before anybody can see it: after a restart there must not be another one. A leader's proposal
  // names what it holds, and what that names is asked for; so this node does not hold it before, either.
  save(guarded([this, c, payload = std::make_shared<Bytes>(std::move(boundary.payload))] {
    if (c.round == round_) show_contribution(c, std::move(*payload));
  }));
}

void RoundParticipant::show_contribution(const Contribution& c, Bytes payload) {
  if (const Verdict verdict = contributions_->take(c); verdict != Verdict::Taken) {
    services_.logger.warning("rounds",
                             fmt::format("this node's own contribution is refused: {}", to_string(verdict)));
    return;
  }
  ContributionPost post{c, {}};
  if (payload.size() <= max_inline_payload) post.payload = payload;
  contributions_->take_payload(std::move(payload));
  send(contribution_key, post, others());
  advance();
}

// What was contributed before a restart: never a second one.
void RoundParticipant::contribute_again() {
  if (!own_ || contributions_->take(*own_) != Verdict::Taken) return;
  contributed_at_ = services_.clock.monotonic_now();
  ContributionPost post{*own_, {}};
  if (kept_payload_.size() <= max_inline_payload) post.payload = kept_payload_;
  send(contribution_key, post, others());
  if (kept_payload_.empty() || !contributions_->take_payload(std::exchange(kept_payload_, {})))
    ask_for_payload(self_);
}

// What has come true is no wish any more: who is expelled soon after it has joined asks again, or is not
// heard.
void RoundParticipant::forget_old_changes() {
  std::erase_if(changes_, [this](const auto& entry) {
    const RoundChange& change = entry.second;
    return round_ - std::min(round_, change.round) > change_life ||
           is_in(entry.first) == (change.kind == RoundChange::Kind::Join);
  });
}

// What this node holds is held against the certificate first: a delta from another anchor helps nobody.
void RoundParticipant::check_own_state(std::function<void()> when_right) {
  if (!state_) return;
  auto hash = std::make_shared<Hash256>();
  services_.work.run(
      [hash, identity = identity(state_round_), state = state_] { *hash = hash_of(identity, *state); },
      guarded([this, hash, state = state_, round = state_round_, when_right = std::move(when_right)] {
        if (state != state_) return;
        if (*hash == state_hash_) return when_right();
        ++counters_.corruptions;
        services_.logger.warning(
            "rounds",
            fmt::format(
                "this node's anchor of round {} is not the certified one: it is fetched from other members",
                round));
        state_.reset();
        state_checked_ = false;
        training_ = false;
        served_.clear();
        state_hash_ = *hash;
        repairing_ = true;
        forget_computed();
        settle_state();
      }));
}

// What the node was started with, if that is it.
bool RoundParticipant::take_known_state() {
  if (!initial_.state || initial_.round != tip_round()) return false;
  settling_ = true;
  auto leaves = std::make_shared<std::vector<Hash256>>();
  const Anchor state = std::exchange(initial_.state, nullptr);
  services_.work.run(
      [leaves, identity = identity(initial_.round), state] {
        *leaves = outer::anchor_leaves(identity, {state->weights, state->momentum, state->bias});
      },
      guarded([this, leaves, state, round = initial_.round] {
        settling_ = false;
        if (chain_ && tip_round() == round && crypto::merkle_root(*leaves) == tip_anchor())
          adopt(state, std::move(*leaves), nullptr);
        else
          settle_state();
      }));
  return true;
}

void RoundParticipant::adopt(Anchor state, std::vector<Hash256> leaves, const StepResult* step) {
  hold(std::move(state), std::move(leaves), step);
  forget_computed();
  if (on_certified_) on_certified_(*chain_, state_, step);
  save_chain();
  begin_training();
}

// The state of the newest certificate, which it was held against.
void RoundParticipant::hold(Anchor state, std::vector<Hash256> leaves, const StepResult* step) {
  state_ = std::move(state);
  state_round_ = tip_round();
  state_hash_ = tip_anchor();
  state_checked_ = true;
  if (served_.empty() || served_.front().hash != state_hash_)
    served_.push_front({state_hash_, state_, std::move(leaves)});
  if (served_.size() > 2) served_.pop_back();
  ask_for_payloads();
  if (step == nullptr) return;
  ++counters_.certified;
  if (counted_) counters_.waiting += services_.clock.monotonic_now() - contributed_at_;
}

void RoundParticipant::fetch_state(std::vector<net::NodeId> sources) {
  settling_ = true;
  fetching_round_ = tip_round();
  fetching_state_ = fetcher_.anchor(
      common_.rules.slot, tip_anchor(), identity(tip_round()), common_.rules.values, common_.bias_values,
      std::move(sources),
      guarded([this, round = tip_round(), hash = tip_anchor()](Expected<std::shared_ptr<OuterState>> state) {
        settling_ = false;
        next_fetch_ = services_.clock.monotonic_now() + fetch_pause;
        if (!state.ok()) {
          // Nobody tells a stranger of new rounds: what it asked for may be too old by now.
          if (!is_member()) next_poll_ = {};
          return;
        }
        ++counters_.fetched_anchors;
        take_fetched(round, hash, std::move(*state));
      }));
}

void RoundParticipant::take_fetched(std::uint64_t round, const Hash256& hash, Anchor state) {
  if (hash == tip_anchor()) {
    auto leaves = outer::anchor_leaves(identity(round), {state->weights, state->momentum, state->bias});
    adopt(std::move(state), std::move(leaves), nullptr);
    return;
  }
  // A round passed meanwhile: from here its payloads lead on, or it shows that this node can hold a state.
  state_ = std::move(state);
  state_round_ = round;
  state_hash_ = hash;
  state_checked_ = true;
  next_fetch_ = {};
  forget_computed();
  settle_state();
}

// What is missing of the state of the round before the newest one, and the payloads from there on, are no
// more than the newest state as a whole. Who is no member only shows that it can hold one.
bool RoundParticipant::goes_on_fetching() const {
  if (fetching_round_ + 1 != tip_round()) return false;
  if (!is_member()) return true;
  const std::uint64_t whole = state_bytes();
  const auto step = bytes_of_step();
  return step && fetcher_.missing(fetching_state_) + *step <= whole;
}

RoundPhase RoundParticipant::phase(bool provisional, bool member) const {
  if (!holds_tip()) return counters_.corruptions > 0 ? RoundPhase::Repairing : RoundPhase::Joining;
  if (provisional) return RoundPhase::Provisional;
  if (!member) return RoundPhase::Joining;
  return closed_ ? RoundPhase::Agreeing : own_ ? RoundPhase::Collecting : RoundPhase::Training;
}

RoundStatus RoundParticipant::status() const {
  RoundStatus status;
  if (!chain_) return status;
  status.round = chain_->tip().round;
  status.tip = chain_->tip_hash();
  status.genesis = chain_->genesis();
  status.tokens = chain_->tip().tokens;
  status.anchor = state_hash_;
  status.view = view_number();
  status.member = is_member();
  status.shared_rounds = chain_->shared_rounds();
  status.phase = phase(provisional_, status.member);
  return status;
}

RoundView RoundParticipant::view() const {
  RoundView view = counters_;
  const RoundStatus now = status();
  view.phase = now.phase;
  view.round = now.round;
  view.own_anchor = now.anchor;
  view.tokens = now.tokens;
  view.member = now.member;
  view.view = now.view;
  view.members = member_count();
  view.groups = group_count_now();
  if (view.members > 0) view.anchor = tip_anchor();
  if (provisional_ && contributions_)
    for (const RoundMember& one : group())
      if (one.id != self_ && contributions_->find(one.id) == nullptr && !contributions_->excluded(one.id))
        view.missing.push_back(one.id);
  view.bytes_sent += outbox_.bytes_sent();
  view.bytes_received += fetcher_.bytes_received();
  return view;
}

}  // namespace neuroshard::rounds
