// RoundParticipant: becoming a member and going, and what it does while it is none.
#include <algorithm>
#include <utility>

#include "core/rounds/detail/outbox_keys.h"
#include "core/rounds/participant.h"

namespace neuroshard::rounds {
namespace {

// Who goes waits so long for its own last delta before it says so.
constexpr Duration last_delta = std::chrono::seconds(1);

}  // namespace

void RoundParticipant::leave() {
  if (std::exchange(leaving_, true)) return;
  left_at_ = next_change_ = services_.clock.monotonic_now();
  if (takes_part() && training_ && !own_ && !boundary_asked_ &&
      services_.learner.progress().steps >= least_steps(round_steps()))
    contribute();
  advance();
}

void RoundParticipant::rejoin() {
  if (!std::exchange(leaving_, false)) return;
  // The others may already have this node's change. When a certificate has it, too, this node asks to join.
  changes_.erase(self_);
  next_change_ = next_poll_ = services_.clock.monotonic_now();
  advance();
}

bool RoundParticipant::left() const {
  if (!is_member()) return !tells_certificate();
  if (member_count() == 1) return true;
  if (!leaving_ || changes_.count(self_) == 0 || outbox_.holds(change_key) || round_ends_early())
    return false;
  // A small payload is there with its contribution, a large one is fetched from here.
  return !own_ || (own_->payload_bytes <= max_inline_payload && !outbox_.holds(contribution_key));
}

bool RoundParticipant::goes(const net::NodeId& id) const {
  const auto change = changes_.find(id);
  return change != changes_.end() && change->second.kind == RoundChange::Kind::Leave;
}

bool RoundParticipant::round_ends_early() const {
  const std::vector<RoundMember>& members = chain_->members();
  const auto going = static_cast<std::size_t>(
      std::count_if(members.begin(), members.end(), [this](const RoundMember& m) { return goes(m.id); }));
  return members.size() - going < quorum_size(members.size()) && going < members.size();
}

bool RoundParticipant::all_usable() const {
  const std::vector<RoundMember>& members = group();
  return std::all_of(members.begin(), members.end(), [this](const RoundMember& m) {
    return contributions_->usable(m.id) || (goes(m.id) && contributions_->find(m.id) == nullptr);
  });
}

// Wants to be a member and is none, or the other way round.
void RoundParticipant::post_change() {
  const MonotonicTime now = services_.clock.monotonic_now();
  const bool member = is_member();
  if (now < next_change_ || (leaving_ ? !member : member || !common_.join) || !chain_ || unfit()) return;
  // Who can't hold the state must not count for quorums. Where rounds pass faster than it comes over this
  // line, most of it shows that as well: members are waited for.
  const bool holds = (state_ && state_checked_) || overtaken_;
  if (!leaving_ && (!holds || (common_.ready_to_join && !common_.ready_to_join()))) return;
  if (leaving_ && (member_count() == 1 || (boundary_asked_ && !own_ && now - left_at_ < last_delta))) return;
  next_change_ = now + 4 * common_.poll;
  const RoundChange change = sign_change(leaving_ ? RoundChange::Kind::Leave : RoundChange::Kind::Join,
                                         common_.rules.slot, tip_round(), services_.key, network_);
  if (member) changes_[self_] = change;
  send(change_key, ChangePost{common_.rules.slot, change}, told_of_change());
}

// Not a member, and nobody is there to join: it trains on by itself, from the last state that it holds. What
// comes of it goes along when the others are back.
void RoundParticipant::train_outside() {
  const MonotonicTime now = services_.clock.monotonic_now();
  if (outside_ || leaving_ || !common_.join || is_member() || !state_ || !state_checked_) return;
  if (common_.shares_training) return train_for_other_slots();
  if (now - std::max(started_, heard_) < common_.provisional_after) return;
  outside_ = provisional_ = true;
  ++counters_.provisional;
  services_.logger.info("rounds",
                        "no member of this network is in reach: this "
                        "node trains on by itself until one is");
  services_.learner.start({round_, state_, Carry::Nothing, std::exchange(counted_, false)});
  services_.learner.go_on();
}

// Members of those wait for this node's work, which rests while any of its learners has nothing to train. If
// each node were a member of some slots only and waited for the others, nobody's round would ever end.
void RoundParticipant::train_for_other_slots() {
  outside_ = true;
  if (!std::exchange(begun_, true))
    services_.learner.start({round_, state_, Carry::Nothing, std::exchange(counted_, false)});
  services_.learner.go_on();
}

}  // namespace neuroshard::rounds
