// GroupedNode: towards the state of the newest certificate, by the shortest way: what was known at the start,
// one step from the aggregates, or the state itself from other members.
#include <fmt/format.h>

#include <algorithm>

#include "core/rounds/detail/grouped_level.h"

namespace neuroshard::rounds {

void GroupedNode::settle_state() {
  if (settling_) return;
  if (holds_tip()) {
    begin_training();
    return;
  }
  if (take_known_state() || step_to_tip()) return;
  if (unfit()) return say_unfit();
  if (services_.clock.monotonic_now() < next_fetch_) return;
  if (!is_member() && (state_checked_ || !options_.join || leaving_)) return;
  if (options_.may_fetch_state && !options_.may_fetch_state()) return;
  std::vector<net::NodeId> sources = some_members(8);
  if (is_member())
    for (const net::NodeId& id : others()) sources.push_back(id);
  fetch_state(std::move(sources));
}

// One round behind, and its aggregates are here or on their way.
bool GroupedNode::step_to_tip() {
  const GroupedLinkPtr link = chain_->tip_grouped();
  if (!state_ || !state_checked_ || state_round_ + 1 != tip_round() || !link || step_failed_) return false;
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
    if (tip_round() != link->body->round) return settle_state();
    if (step->ok() && (*step)->hash == tip_anchor()) return adopt((*step)->state, (*step)->leaves, &**step);
    ++counters_.corruptions;
    state_checked_ = false;
    repairing_ = true;
    services_.logger.warning("rounds", fmt::format("this node's anchor of round {} is not the certified one: "
                                                   "that is fetched from other members",
                                                   tip_round()));
    settle_state();
  });
  return true;
}

void GroupedNode::forget_computed() {
  step_failed_ = false;
  group_work_.forget();
  top_work_.forget();
}

}  // namespace neuroshard::rounds
