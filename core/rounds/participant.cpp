#include "core/rounds/participant.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/check.h"
#include "core/crypto/hash.h"
#include "core/rounds/detail/outbox_keys.h"

namespace neuroshard::rounds {
namespace {

constexpr Duration fetch_pause = std::chrono::seconds(2);

}  // namespace

RoundParticipant::RoundParticipant(RoundServices services, const ParticipantOptions& options,
                                   KnownState known, std::uint64_t seed)
    : services_(services),
      common_(options),
      self_(crypto::node_id(services.key.public_key())),
      network_(options.rules.network),
      rng_(seed),
      outbox_(services.caller, services.peers, services.clock, options.outbox,
              [this](const net::NodeId& from, const PostAnswer& answer) {
                if (answer.round > round_) catch_up_with(from);
              }),
      fetcher_(services.caller, services.peers, services.executor, options.fetch),
      initial_(std::move(known)) {
  NS_CHECK(initial_.state && initial_.state->weights.size() == options.rules.values);
}

RoundParticipant::~RoundParticipant() = default;

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
  if (durations_.empty()) return common_.first_deadline;
  std::vector<Duration> sorted(durations_.begin(), durations_.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted[(sorted.size() - 1) / 2] * 5 / 4;
}

void RoundParticipant::close(MonotonicTime now, bool as_measure) {
  closed_ = true;
  closed_at_ = now;
  // A shorter first round says what a whole one would have taken.
  if (as_measure) durations_.push_back((now - opened_) * common_.rules.inner_steps / round_steps());
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
  if (const Verdict verdict = contributions_->take(c); verdict != Verdict::Taken) {
    services_.logger.warning("rounds",
                             fmt::format("this node's own contribution is refused: {}", to_string(verdict)));
    return;
  }
  ContributionPost post{c, {}};
  if (boundary.payload.size() <= max_inline_payload) post.payload = boundary.payload;
  const auto told = [this](Expected<void> saved) {
    if (saved.ok()) return;
    ++counters_.failed_saves;
    services_.logger.error("rounds", saved.error().describe());
  };
  if (!boundary.memory.empty())
    services_.store.save(RoundStore::Record::Learner, std::move(boundary.memory), guarded(told));
  services_.store.save(RoundStore::Record::Payload, boundary.payload, guarded(told));
  contributions_->take_payload(std::move(boundary.payload));
  // On the disk before it leaves: after a restart there must not be another one.
  save(guarded([this, post = std::move(post)] {
    if (post.contribution.round == round_) send(contribution_key, post, others());
  }));
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

void RoundParticipant::load_payload() {
  auto payload = services_.store.load(RoundStore::Record::Payload);
  if (own_ && payload.ok() && crypto::sha256(*payload) == own_->payload) kept_payload_ = std::move(*payload);
}

void RoundParticipant::remind_learner() {
  if (auto memory = services_.store.load(RoundStore::Record::Learner); memory.ok())
    services_.learner.recall(std::move(*memory));
}

void RoundParticipant::go_provisional() {
  const MonotonicTime now = services_.clock.monotonic_now();
  if (provisional_ || !closed_ || now - closed_at_ < common_.provisional_after) return;
  provisional_ = true;
  ++counters_.provisional;
  services_.logger.info("rounds", fmt::format("round {}: more than a third of {} members are out of reach; "
                                              "this node trains on by itself until they are back",
                                              round_, member_count()));
  services_.learner.go_on();
}

void RoundParticipant::forget_old_changes() {
  for (auto at = changes_.begin(); at != changes_.end();)
    at = round_ - std::min(round_, at->second.round) > change_life ? changes_.erase(at) : std::next(at);
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
        own_state_is_wrong(*hash);
        settle_state();
      }));
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
  if (step == nullptr) return;
  ++counters_.certified;
  if (counted_) counters_.waiting += services_.clock.monotonic_now() - contributed_at_;
}

void RoundParticipant::fetch_state(std::vector<net::NodeId> sources) {
  settling_ = true;
  fetcher_.anchor(
      common_.rules.slot, tip_anchor(), identity(tip_round()), common_.rules.values, common_.bias_values,
      std::move(sources), guarded([this, hash = tip_anchor()](Expected<std::shared_ptr<OuterState>> state) {
        settling_ = false;
        next_fetch_ = services_.clock.monotonic_now() + fetch_pause;
        if (!state.ok()) return;
        if (hash != tip_anchor()) {  // a round passed meanwhile
          next_fetch_ = {};
          return settle_state();
        }
        ++counters_.fetched_anchors;
        const OuterState& s = **state;
        auto leaves = outer::anchor_leaves(identity(tip_round()), {s.weights, s.momentum, s.bias});
        adopt(std::move(*state), std::move(leaves), nullptr);
      }));
}

RoundPhase RoundParticipant::phase(bool provisional, bool member) const {
  if (!holds_tip()) return counters_.corruptions > 0 ? RoundPhase::Repairing : RoundPhase::Joining;
  if (provisional) return RoundPhase::Provisional;
  if (!member) return RoundPhase::Joining;
  return closed_ ? RoundPhase::Agreeing : own_ ? RoundPhase::Collecting : RoundPhase::Training;
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
  if (view.members > 0) view.anchor = tip_anchor();
  view.bytes_sent += outbox_.bytes_sent();
  view.bytes_received += fetcher_.bytes_received();
  return view;
}

}  // namespace neuroshard::rounds
