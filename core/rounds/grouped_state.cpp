// GroupedNode: towards the state of the newest certificate, by the shortest way: what was known at the start,
// one step from the aggregates, or the state itself from other members.
#include <fmt/format.h>

#include <algorithm>

#include "core/crypto/merkle.h"
#include "core/rounds/detail/grouped_level.h"

namespace neuroshard::rounds {

void GroupedNode::settle_state() {
  if (settling_) return;
  if (holds_tip()) {
    begin_training();
    return;
  }
  if (initial_.state && initial_.round == tip_.round) {
    const Anchor known = std::exchange(initial_.state, nullptr);
    auto leaves = outer::anchor_leaves(identity(tip_.round), {known->weights, known->momentum, known->bias});
    if (crypto::merkle_root(leaves) == tip_.anchor) return adopt(known, std::move(leaves), nullptr);
  }
  if (step_to_tip() || services_.clock.monotonic_now() < next_fetch_) return;
  if (!is_member() && (state_checked_ || !options_.join)) return;
  fetch_state(some_members(8));
}

// One round behind, and its aggregates are here or on their way.
bool GroupedNode::step_to_tip() {
  if (!state_ || !state_checked_ || state_round_ + 1 != tip_.round || links_.empty() || step_failed_)
    return false;
  const GroupedLinkPtr link = links_.back();
  if (!fetch_aggregates(*link->body, &tip_gathering_)) {
    step_failed_ = std::any_of(link->body->groups.begin(), link->body->groups.end(), [this](const auto& r) {
      const auto failed = failed_.find(r.certificate.body.anchor);
      return failed != failed_.end() && failed->second > 2;
    });
    return !step_failed_;
  }
  settling_ = true;
  anchor_of(*link->body, [this, link](const SharedStep& step) {
    settling_ = false;
    if (tip_.round != link->body->round) return settle_state();
    if (step->ok() && (*step)->hash == tip_.anchor) return adopt((*step)->state, (*step)->leaves, &**step);
    ++counters_.corruptions;
    state_checked_ = false;
    services_.logger.warning(
        "rounds",
        fmt::format(
            "this node's anchor of round {} is not the certified one: that is fetched from other members",
            tip_.round));
    settle_state();
  });
  return true;
}

void GroupedNode::adopt(Anchor state, std::vector<Hash256> leaves, const StepResult* step) {
  hold(std::move(state), std::move(leaves), step);
  step_failed_ = false;
  if (on_certified_ && !links_.empty() && links_.back()->body->round == tip_.round)
    on_certified_(links_.back(), state_, step);
  group_work_.forget();
  top_work_.forget();
  if (tip_.round > 0) save_chain();
  begin_training();
}

void GroupedNode::own_state_is_wrong(const Hash256&) {
  top_work_.forget();
  boundary_asked_ = false;
}

}  // namespace neuroshard::rounds
