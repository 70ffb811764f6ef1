// RoundNode: towards the state of the newest certificate, by the shortest way.
#include <fmt/format.h>

#include <algorithm>

#include "core/rounds/node.h"

namespace neuroshard::rounds {

void RoundNode::settle_state() {
  if (!chain_ || settling_) return;
  if (holds_tip()) {
    begin_training();
    return;
  }
  if (take_known_state() || step_to_tip() || waits_for_payloads()) return;
  if (unfit()) return say_unfit();
  if (services_.clock.monotonic_now() < next_fetch_) return;
  // Who is no member fetches one state, which shows that it can, and asks to join; not one in every round.
  if (!is_member() && (state_checked_ || !options_.join || leaving_)) return;
  if (options_.may_fetch_state && !options_.may_fetch_state()) return;
  fetch_state(sources());
}

// One round behind, and the payloads are here.
bool RoundNode::step_to_tip() {
  const RoundBody& tip = chain_->tip();
  if (!state_ || !state_checked_ || state_round_ + 1 != tip.round || !previous_contributions_) return false;
  std::vector<StepInput> inputs;
  for (const RoundContributor& c : tip.contributors) {
    const net::NodeId& id = tip.members[c.member].id;
    const auto* entry = previous_contributions_->find_payload(c.payload);
    if (entry == nullptr || !entry->payload) return false;
    inputs.push_back({id, c.tokens, entry->payload});
  }
  settling_ = true;
  // Computed already, to judge a proposal or to make one.
  if (const auto at = computing_.find(step_key(tip.round, tip.contributors)); at != computing_.end()) {
    const auto computing = at->second;
    if (computing->result)
      static_cast<void>(services_.executor.post(
          guarded([this, computing, round = tip.round] { stepped(round, *computing->result); })));
    else
      computing->waiting.push_back(
          [this, round = tip.round](const Expected<StepResult>& step) { stepped(round, step); });
    return true;
  }
  auto result = std::make_shared<std::optional<Expected<StepResult>>>();
  services_.work.run(
      [result, inputs = std::move(inputs), rules = options_.outer, before = state_,
       identity = identity(tip.round), most = options_.rules.most_tokens] {
        result->emplace(make_step(rules, identity, *before, inputs, most));
      },
      guarded([this, result, round = tip.round] { stepped(round, **result); }));
  return true;
}

// One round behind, and what is missing of its payloads is less than the state that they make: over a slow
// line a certificate is often here before all that it names. When nothing more of them comes, because their
// owner has gone, others have the state.
bool RoundNode::waits_for_payloads() {
  const RoundBody& tip = chain_->tip();
  if (!state_ || !state_checked_ || state_round_ + 1 != tip.round || !previous_contributions_ ||
      payload_lost_ || !is_member() || unfit())
    return false;
  std::vector<const Contribution*> missing;
  std::vector<Hash256> unheard;  // contributions and all
  std::uint64_t bytes = 0;
  for (const RoundContributor& c : tip.contributors) {
    const auto* entry = previous_contributions_->find_payload(c.payload);
    if (entry == nullptr) {
      unheard.push_back(c.payload);
      bytes += outer::max_payload_bytes(options_.rules.codec, options_.rules.values);
    } else if (!entry->payload) {
      missing.push_back(&entry->contribution);
      bytes += entry->contribution.payload_bytes;
    }
  }
  if (bytes >= state_bytes()) return false;
  for (const Contribution* contribution : missing)
    if (asked_before_.insert(contribution->payload).second) fetch_payload(*contribution);
  for (const Hash256& payload : unheard)
    if (asked_before_.insert(payload).second) fetch_contribution(tip.round, payload, sources(), false);
  const Duration patience = options_.fetch.allowed;
  return pieces_come(patience) || services_.clock.monotonic_now() - opened_ < patience;
}

std::optional<std::uint64_t> RoundNode::bytes_of_step() const {
  std::uint64_t bytes = 0;
  for (const RoundContributor& c : chain_->tip().contributors) {
    const auto* entry = previous_contributions_ ? previous_contributions_->find_payload(c.payload) : nullptr;
    if (entry == nullptr) return std::nullopt;
    if (!entry->payload) bytes += entry->contribution.payload_bytes;
  }
  return bytes;
}

void RoundNode::stepped(std::uint64_t round, const Expected<StepResult>& step) {
  settling_ = false;
  if (!chain_) return;
  if (round == chain_->tip().round && step.ok() && step->hash == chain_->tip().anchor) {
    adopt(step->state, step->leaves, &*step);
    return;
  }
  if (round == chain_->tip().round) {
    ++counters_.corruptions;
    repairing_ = true;
    state_checked_ = false;
    state_.reset();
    services_.logger.warning(
        "rounds",
        fmt::format(
            "this node's anchor of round {} is not the certified one: that is fetched from other members",
            round));
    if (step.ok()) state_hash_ = step->hash;
  }
  settle_state();
}

std::vector<net::NodeId> RoundNode::sources() {
  std::vector<net::NodeId> ids = others();
  for (const RoundContributor& c : chain_->tip().contributors) {
    const net::NodeId& id = chain_->tip().members[c.member].id;
    if (id != self_ && std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  }
  shuffle(&ids);
  return ids;
}

}  // namespace neuroshard::rounds
