// GroupedNode: answering others and catching up with them.
#include <algorithm>

#include "core/rounds/detail/grouped_level.h"
#include "core/rounds/detail/overloaded.h"
#include "core/rounds/detail/reader.h"

namespace neuroshard::rounds {
namespace {

constexpr std::size_t asked_when_stuck = 8;  // in each poll

}  // namespace

PostAnswer GroupedNode::on_post(const net::NodeId& from, ByteSpan bytes) {
  auto post = decode_grouped_post(bytes);
  if (!post.ok()) return {Verdict::Malformed, round_};
  const Verdict verdict = dispatch(from, std::move(*post));
  return {verdict, round_};
}

Verdict GroupedNode::dispatch(const net::NodeId& from, GroupedPost all) {
  const auto& slot = options_.rules.slot;
  auto& top = top_level_->agreement;
  return std::visit(Overloaded{[&](GroupPost& post) { return on_group_item(from, post.item); },
                               [&](GroupedProposal& post) { return on_grouped_proposal(from, post); },
                               [&](GroupedLock& post) {
                                 if (post.quorum.body.slot != slot) return Verdict::OtherSlot;
                                 const Verdict here = at_round(post.quorum.body.round, from);
                                 if (here != Verdict::Taken) return here;
                                 if (!top) return Verdict::Busy;
                                 const Verdict taken = top->on_lock(post.quorum);
                                 if (post.relay && taken == Verdict::Taken)
                                   pass_on(top_lock_key, std::move(post));
                                 return taken;
                               },
                               [&](GroupedCertificate& post) {
                                 if (post.quorum.body.slot != slot) return Verdict::OtherSlot;
                                 const Verdict here = at_round(post.quorum.body.round, from);
                                 if (here != Verdict::Taken) return here;
                                 const auto fellows_before = others();
                                 const Verdict taken = on_certificate(from, post.quorum);
                                 if (post.relay && taken == Verdict::Taken) {
                                   post.relay = false;
                                   outbox_.put(top_certificate_key + pass_on_key,
                                               commons_.keep(encode_grouped_post(std::move(post))),
                                               fellows_before);
                                 }
                                 return taken;
                               },
                               [&](CollectedVotes& post) {
                                 if (post.vote.slot != slot) return Verdict::OtherSlot;
                                 const Verdict here = at_round(post.vote.round, from);
                                 return here == Verdict::Taken ? on_votes(from, post) : here;
                               },
                               [&](GroupResult& post) {
                                 if (post.certificate.body.slot != slot) return Verdict::OtherSlot;
                                 const Verdict here = at_round(post.certificate.body.round, from);
                                 return here == Verdict::Taken ? on_result(std::move(post)) : here;
                               },
                               [&](NewViewPost& post) {
                                 if (post.slot != slot) return Verdict::OtherSlot;
                                 const Verdict here = at_round(post.round, from);
                                 if (here != Verdict::Taken) return here;
                                 return top ? top->on_new_view(from, post) : Verdict::Busy;
                               }},
                    all);
}

Verdict GroupedNode::on_grouped_proposal(const net::NodeId& from, GroupedProposal& post) {
  // Whose round it is stands in the content.
  Reader in(ByteSpan(post.content).subspan(std::min<std::size_t>(6, post.content.size())));
  const RoundSlot of = in.slot();
  const auto round = in.number<std::uint64_t>();
  if (!in.good()) return Verdict::Malformed;
  if (of != options_.rules.slot) return Verdict::OtherSlot;
  const Verdict here = at_round(round, from);
  if (here != Verdict::Taken) return here;
  std::optional<GroupedProposal> copy;
  if (post.relay) copy = post;
  const Verdict taken = on_proposal(std::move(post));
  if (copy && taken == Verdict::Taken) pass_on(top_proposal_key, std::move(*copy));
  return taken;
}

// Of the round that is made. From itself: this node led, and tells everybody.
Verdict GroupedNode::on_certificate(const net::NodeId& from, const RoundQuorum& quorum) {
  const auto content = contents_.find(quorum.body.anchor);
  if (content == contents_.end()) {
    catch_up_with(from);
    return Verdict::Busy;
  }
  const auto link = commons_.link(quorum, content->second.bytes, *deal_);
  if (!link.ok()) return Verdict::BadCertificate;
  if (from != self_) {
    chain_->append(*link);
    link_taken();
    settle_state();
    return Verdict::Taken;
  }
  // The dealing of the round that ends is what its speakers are found by.
  const auto deal = deal_;
  const auto group = group_;
  chain_->append(*link);
  link_taken();
  tell_certificate(*deal, group, quorum);
  settle_state();
  return Verdict::Taken;
}

void GroupedNode::tell_certificate(const Deal& deal, std::uint16_t group, const RoundQuorum& quorum) {
  std::vector<net::NodeId> speakers, own;
  for (std::size_t g = 0; g < deal.groups.size(); ++g)
    for (std::size_t which = 0; which < Deal::speakers_at_once; ++which)
      if (g != group) speakers.push_back(deal.roster->members[deal.speaker(g, quorum.view, which)].id);
  outbox_.put(top_certificate_key, commons_.keep(encode_grouped_post(GroupedCertificate{true, quorum})),
              speakers);
  for (const RoundMember& member : *deal.groups[group])
    if (member.id != self_) own.push_back(member.id);
  outbox_.put(top_certificate_key + pass_on_key,
              commons_.keep(encode_grouped_post(GroupedCertificate{false, quorum})), own);
}

// Of the round that this node contributed to: the deal is still that one.
bool GroupedNode::group_is_absent(const RoundChain& chain) const {
  const GroupedLinkPtr& link = chain.tip_grouped();
  if (!link || link->body->round != round_ || !is_member()) return false;
  const auto& groups = link->body->groups;
  return std::none_of(groups.begin(), groups.end(),
                      [this](const GroupResult& result) { return result.group == group_; });
}

Payload GroupedNode::other_payload(const Hash256& hash) const {
  const auto aggregate = aggregates_.find(hash);
  return aggregate == aggregates_.end() ? nullptr : aggregate->second.payload;
}

// ---- catching up ----

std::vector<net::NodeId> GroupedNode::some_members(std::size_t count) {
  std::vector<net::NodeId> ids;
  const auto& members = roster().members;
  for (std::size_t i = 0; i < count; ++i) {
    const net::NodeId& id = members[rng_.below(members.size())].id;
    if (id != self_ && std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  }
  return ids;
}

// A round that is closed for long may wait for members whose views have drifted apart: many are asked then.
std::vector<net::NodeId> GroupedNode::asked_how_far(bool back) {
  if (back && is_member()) return others();
  const bool stuck = closed_ && services_.clock.monotonic_now() - closed_at_ > options_.top.first_view;
  return some_members(stuck ? asked_when_stuck : !is_member() || provisional_ ? 3 : 1);
}

void GroupedNode::heard_view(const net::NodeId& id, std::uint32_t view) {
  if (is_member() && top_level_->agreement) top_level_->agreement->on_view(id, view);
}

}  // namespace neuroshard::rounds
