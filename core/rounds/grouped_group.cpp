// GroupedNode: the agreement of its sub-group on an aggregate. As RoundNode's on an anchor, with the
// aggregate in the anchor's place.
#include <algorithm>

#include "core/rounds/detail/grouped_level.h"
#include "core/rounds/detail/outbox_keys.h"

namespace neuroshard::rounds {

void GroupedNode::Level::broadcast(const RoundItem& item) {
  if (top_) {
    node_.top_broadcast(item);
    return;
  }
  node_.send(key_of(item), item, node_.others());
}

void GroupedNode::Level::remember(const AgreementMemory& now, std::function<void()> then) {
  (top_ ? node_.top_memory_ : node_.group_memory_) = now;
  node_.memory_round_ = node_.round_;
  // This may be gone by then, and the round another.
  node_.save(node_.guarded([level = this, node = &node_, top = top_, then = std::move(then)] {
    if ((top ? node->top_level_ : node->group_level_).get() == level && level->agreement) then();
  }));
}

void GroupedNode::Level::judge(const RoundBody& body) {
  judging[body_hash(body)] = {body, false};
  // Not from within the agreement: the answer may change it.
  static_cast<void>(node_.services_.executor.post(node_.guarded([node = &node_] { node->advance(); })));
}

void GroupedNode::Level::make_body() {
  (top_ ? node_.want_top_body_ : node_.want_group_body_) = true;
  static_cast<void>(node_.services_.executor.post(node_.guarded([node = &node_] { node->advance(); })));
}

void GroupedNode::Level::locked(const RoundQuorum& quorum) {
  if (top_) node_.spread(top_lock_key, GroupedLock{true, quorum});
}

void GroupedNode::Level::certified(const RoundCertificate& certificate) {
  static_cast<void>(node_.services_.executor.post(
      node_.guarded([node = &node_, top = top_, round = node_.round_, certificate] {
        if (round != node->round_) return;
        if (top)
          node->on_certificate(node->self_, certificate);
        else
          node->group_certified(certificate);
      })));
}

GroupedNode::Finding GroupedNode::examine_group(const RoundBody& body) {
  if (body.slot != options_.rules.slot || body.round != round_ ||
      body.previous != group_beacon(chain_->tip_hash(), group_) || body.members != group() ||
      body.contributors.empty() || !body.changes.empty() || body.tokens != counted_tokens(body.contributors))
    return Finding::Wrong;
  return group_level_->agreement->is_locked(body) ? examine_locked(body) : examine_contributors(body);
}

void GroupedNode::review_group() {
  Level& level = *group_level_;
  std::vector<std::pair<Hash256, Finding>> found;
  for (auto& [hash, judging] : level.judging) {
    if (judging.computing) continue;
    const Finding finding = examine_group(judging.body);
    if (finding == Finding::Wait) continue;
    if (finding != Finding::Compute) {
      found.emplace_back(hash, finding);
      continue;
    }
    judging.computing = true;
    aggregate_of(judging.body.contributors, [this, hash = hash, round = round_, anchor = judging.body.anchor](
                                                const Expected<GroupAggregate>& aggregate) {
      if (round != round_ || group_level_->judging.erase(hash) == 0) return;
      const bool right = aggregate.ok() && aggregate->unreadable.empty() && aggregate->hash == anchor;
      group_level_->agreement->judged(hash, right);
    });
  }
  for (const auto& [hash, finding] : found) {
    level.judging.erase(hash);
    if (finding == Finding::Disproved)
      level.agreement->disproved(hash);
    else
      level.agreement->judged(hash, false);
  }
}

void GroupedNode::try_group_body() {
  if (!want_group_body_ || making_group_body_) return;
  const bool late = closed_ && contributions_are_late();
  const std::size_t usable = contributions_->usable_count();
  if (usable == 0 || (!late && !all_usable())) return;
  making_group_body_ = true;
  RoundBody body = body_of_usable(group_beacon(chain_->tip_hash(), group_));
  aggregate_of(body.contributors, [this, body](const Expected<GroupAggregate>& aggregate) mutable {
    if (body.round != round_) return;
    making_group_body_ = false;
    if (!aggregate.ok()) {
      services_.logger.warning("rounds", aggregate.error().describe());
      return;
    }
    if (!aggregate->unreadable.empty()) {
      for (const net::NodeId& id : aggregate->unreadable) contributions_->exclude(id);
      return;  // again without them, at the next look
    }
    want_group_body_ = false;
    body.anchor = aggregate->hash;
    group_level_->agreement->propose(body);
  });
}

void GroupedNode::aggregate_of(const std::vector<RoundContributor>& contributors,
                               std::function<void(const Expected<GroupAggregate>&)> done) {
  group_work_.run(
      step_key(round_, contributors), services_.work, services_.executor,
      [inputs = inputs_of(contributors), rules = options_.outer, values = options_.rules.values,
       most = options_.rules.most_tokens] { return make_group_aggregate(rules, values, inputs, most); },
      [this, done = std::move(done), round = round_](const Expected<GroupAggregate>& aggregate) {
        if (round == round_ && aggregate.ok() && aggregate->payload)
          aggregates_[aggregate->hash] = {round_, commons_.keep(Bytes(*aggregate->payload))};
        done(aggregate);
      });
}

void GroupedNode::group_certified(const RoundQuorum& certificate) {
  if (own_result_) return;
  own_result_ = certificate;
  own_result_at_ = services_.clock.monotonic_now();
  advance();
}

bool GroupedNode::Level::is_liar(std::size_t member) const {
  const auto& members = top_ ? node_.roster().members : node_.group();
  return member < members.size() && node_.RoundParticipant::is_liar(members[member].id);
}

void GroupedNode::liar_found() {
  for (Level* const level : {group_level_.get(), top_level_.get()})
    if (level != nullptr && level->agreement) level->agreement->leader_may_be_liar();
}

// To this sub-group by whoever finds out or hears it from another one; to the speakers of the others by those
// of the liar's: a liar is dealt among others in each round, and would cost each sub-group a proof of its
// own.
void GroupedNode::tell_proof(const EvidencePost& evidence, const net::NodeId& from) {
  const bool own = from == self_;
  const bool of_fellow = !own && member_index(group(), from) < group().size();
  if (!of_fellow) send(key_of_proof(evidence), evidence, others());
  const std::size_t liar = roster_index(roster(), crypto::node_id(evidence.first.key));
  const std::uint32_t view = view_number();
  if (evidence.first.round != round_ || deal_->group_of[liar] != group_ || !(own || of_fellow) ||
      !deal_->speaks(static_cast<std::uint16_t>(index_), view))
    return;
  std::vector<net::NodeId> speakers;
  for (std::size_t g = 0; g < deal_->groups.size(); ++g)
    for (std::size_t which = 0; which < Deal::speakers_at_once; ++which)
      if (g != group_) speakers.push_back(roster().members[deal_->speaker(g, view, which)].id);
  send(proof_to_others_key + static_cast<std::uint32_t>(liar), evidence, speakers);
}

Verdict GroupedNode::on_group_item(const net::NodeId& from, ByteSpan bytes) {
  auto item = decode_item(bytes);
  if (!item.ok()) return Verdict::Malformed;
  if (const auto* post = std::get_if<ChangePost>(&*item)) return on_change(from, *post, max_grouped_changes);
  return on_item(from, *item, group_level_->agreement ? &*group_level_->agreement : nullptr);
}

}  // namespace neuroshard::rounds
