// GroupedNode: the agreement of its sub-group on an aggregate. As RoundNode's on an anchor, with the
// aggregate in the anchor's place.
#include <fmt/format.h>

#include <algorithm>

#include "core/crypto/hash.h"
#include "core/rounds/detail/grouped_level.h"
#include "core/rounds/detail/outbox_keys.h"

namespace neuroshard::rounds {

void GroupedNode::Level::broadcast(const RoundItem& item) {
  if (top_) {
    node_.top_broadcast(item);
    return;
  }
  node_.outbox_.put(key_of(item),
                    std::make_shared<const Bytes>(encode_grouped_post(GroupPost{encode_item(item)})),
                    node_.other_fellows());
}

void GroupedNode::Level::remember(const AgreementMemory& now, std::function<void()> then) {
  memory = now;
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

std::uint64_t GroupedNode::counted_tokens(const std::vector<RoundContributor>& contributors) const {
  std::uint64_t sum = 0;
  for (const RoundContributor& c : contributors) sum += std::min(c.tokens, options_.rules.most_tokens);
  return sum;
}

GroupedNode::Finding GroupedNode::examine_group(const RoundBody& body) {
  if (body.slot != options_.rules.slot || body.round != round_ ||
      body.previous != group_beacon(tip_.tip, group_) || body.members != fellows() ||
      body.contributors.empty() || !body.changes.empty() || body.tokens != counted_tokens(body.contributors))
    return Finding::Wrong;
  bool wait = false;
  std::size_t full = 0;
  std::set<Hash256> payloads;
  for (const RoundContributor& c : body.contributors) {
    const net::NodeId& id = body.members[c.member].id;
    if (contributions_->excluded(id) || !payloads.insert(c.payload).second) return Finding::Wrong;
    const auto* entry = contributions_->find(id);
    if (entry == nullptr || entry->contribution.payload != c.payload) {
      ask_for_contribution(c.payload);
      wait = true;
      continue;
    }
    if (entry->contribution.tokens != c.tokens || entry->contribution.steps != c.steps) return Finding::Wrong;
    if (c.steps >= options_.rules.inner_steps) ++full;
    if (!entry->payload) {
      ask_for_payload(id);
      wait = true;
    }
  }
  if (3 * body.contributors.size() < 2 * contributions_->usable_count()) return Finding::Wrong;
  const bool early =
      full < quorum_size(body.members.size()) && body.contributors.size() < body.members.size();
  return wait || (early && !closed_) ? Finding::Wait : Finding::Compute;
}

void GroupedNode::review_group() {
  Level& level = *group_level_;
  std::vector<Hash256> wrong;
  for (auto& [hash, judging] : level.judging) {
    if (judging.computing) continue;
    const Finding finding = examine_group(judging.body);
    if (finding == Finding::Wait) continue;
    if (finding == Finding::Wrong) {
      wrong.push_back(hash);
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
  for (const Hash256& hash : wrong) {
    level.judging.erase(hash);
    level.agreement->judged(hash, false);
  }
}

void GroupedNode::try_group_body() {
  if (!want_group_body_ || making_group_body_) return;
  const bool late = closed_ && services_.clock.monotonic_now() - closed_at_ >= options_.grace;
  const std::size_t usable = contributions_->usable_count();
  if (usable == 0 || (!late && usable < fellows().size())) return;
  making_group_body_ = true;
  RoundBody body;
  body.slot = options_.rules.slot;
  body.round = round_;
  body.previous = group_beacon(tip_.tip, group_);
  body.members = fellows();
  for (std::size_t i = 0; i < body.members.size(); ++i) {
    if (!contributions_->usable(body.members[i].id)) continue;
    const Contribution& c = contributions_->find(body.members[i].id)->contribution;
    body.contributors.push_back({static_cast<std::uint16_t>(i), c.steps, c.tokens, c.payload});
  }
  body.tokens = counted_tokens(body.contributors);
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
  Bytes key;
  append_le(key, round_);
  std::vector<StepInput> inputs;
  for (const RoundContributor& c : contributors) {
    const net::NodeId& id = fellows()[c.member].id;
    append_le(key, c.member);
    append_le(key, c.tokens);
    key.insert(key.end(), c.payload.begin(), c.payload.end());
    inputs.push_back({id, c.tokens, contributions_->find(id)->payload});
  }
  group_work_.run(
      crypto::sha256(key), services_.work, services_.executor,
      [inputs = std::move(inputs), rules = options_.outer, values = options_.rules.values,
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

void GroupedNode::ask_for_payload(const net::NodeId& owner) {
  const auto* entry = contributions_->find(owner);
  if (entry == nullptr || entry->payload || !asked_.insert(entry->contribution.payload).second) return;
  std::vector<net::NodeId> sources = other_fellows();
  for (std::size_t i = sources.size(); i > 1; --i) std::swap(sources[i - 1], sources[rng_.below(i)]);
  std::stable_partition(sources.begin(), sources.end(),
                        [&owner](const net::NodeId& id) { return id == owner; });
  fetcher_.payload(options_.rules.slot, entry->contribution.payload, entry->contribution.payload_bytes,
                   std::move(sources),
                   guarded([this, round = round_, hash = entry->contribution.payload](Expected<Bytes> bytes) {
                     if (round != round_) return;
                     asked_.erase(hash);
                     if (bytes.ok() && contributions_->take_payload(std::move(*bytes))) advance();
                   }));
}

void GroupedNode::ask_for_contribution(const Hash256& payload) {
  if (!asked_.insert(payload).second) return;
  std::vector<net::NodeId> sources = other_fellows();
  const auto& agreement = *group_level_->agreement;
  const net::NodeId leader = fellows()[agreement.leader(agreement.view())].id;
  std::stable_partition(sources.begin(), sources.end(),
                        [&leader](const net::NodeId& id) { return id == leader; });
  fetcher_.contribution(options_.rules.slot, payload, std::move(sources),
                        guarded([this, round = round_, payload](Expected<Bytes> bytes) {
                          if (round != round_) return;
                          asked_.erase(payload);
                          if (!bytes.ok()) return;
                          auto contribution = decode_contribution(*bytes);
                          if (contribution.ok()) on_contribution({std::move(*contribution), {}});
                        }));
}

Verdict GroupedNode::on_contribution(ContributionPost post) {
  const Verdict verdict = contributions_->take(post.contribution);
  if (verdict == Verdict::TwoPayloads) {
    const auto evidence = contributions_->evidence();
    if (!evidence.empty() && !outbox_.holds(evidence_key)) {
      ++counters_.evidence;
      outbox_.put(evidence_key,
                  std::make_shared<const Bytes>(
                      encode_grouped_post(GroupPost{encode_item(RoundItem(evidence.front()))})),
                  other_fellows());
    }
  }
  if (verdict != Verdict::Taken && verdict != Verdict::Known) return verdict;
  if (!post.payload.empty() && crypto::sha256(post.payload) == post.contribution.payload)
    contributions_->take_payload(std::move(post.payload));
  else if (is_member())
    ask_for_payload(crypto::node_id(post.contribution.key));
  static_cast<void>(services_.executor.post(guarded([this] { advance(); })));
  return verdict;
}

Verdict GroupedNode::on_group_item(const net::NodeId& from, ByteSpan bytes) {
  auto item = decode_item(bytes);
  if (!item.ok()) return Verdict::Malformed;
  if (auto* post = std::get_if<ChangePost>(&*item)) {
    const net::NodeId id = crypto::node_id(post->change.key);
    if (post->slot != options_.rules.slot) return Verdict::OtherSlot;
    if (id != from || !change_holds(post->change, post->slot, round_, commons_.network()))
      return Verdict::BadSignature;
    if (changes_.size() >= max_grouped_changes && changes_.count(id) == 0) return Verdict::Busy;
    changes_[id] = post->change;
    return Verdict::Taken;
  }
  auto* agreement = group_level_->agreement ? &*group_level_->agreement : nullptr;
  if (auto* post = std::get_if<ContributionPost>(&*item)) {
    if (post->contribution.slot != options_.rules.slot) return Verdict::OtherSlot;
    const Verdict here = at_round(post->contribution.round, from);
    return here == Verdict::Taken ? on_contribution(std::move(*post)) : here;
  }
  if (const auto* post = std::get_if<ProposalPost>(&*item)) {
    const Verdict here = at_round(post->body.round, from);
    return here != Verdict::Taken ? here : agreement ? agreement->on_proposal(from, *post) : Verdict::Busy;
  }
  if (const auto* post = std::get_if<VotePost>(&*item)) {
    if (post->vote.slot != options_.rules.slot) return Verdict::OtherSlot;
    const Verdict here = at_round(post->vote.round, from);
    return here != Verdict::Taken ? here : agreement ? agreement->on_vote(*post) : Verdict::Busy;
  }
  if (const auto* post = std::get_if<NewViewPost>(&*item)) {
    if (post->slot != options_.rules.slot) return Verdict::OtherSlot;
    const Verdict here = at_round(post->round, from);
    return here != Verdict::Taken ? here : agreement ? agreement->on_new_view(from, *post) : Verdict::Busy;
  }
  if (const auto* post = std::get_if<EvidencePost>(&*item)) {
    const Verdict here = at_round(post->first.round, from);
    if (here != Verdict::Taken) return here;
    const Verdict taken = contributions_->take_evidence(*post);
    if (taken == Verdict::Taken) ++counters_.evidence;
    return taken;
  }
  return Verdict::Malformed;
}

}  // namespace neuroshard::rounds
