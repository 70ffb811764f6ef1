// GroupedNode: answering others and catching up with them.
#include <algorithm>

#include "core/rounds/detail/grouped_level.h"
#include "core/rounds/detail/overloaded.h"
#include "core/rounds/detail/reader.h"

namespace neuroshard::rounds {
namespace {

constexpr std::size_t links_kept = 64;
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
    sync_from(from);
    return Verdict::Busy;
  }
  const auto link = commons_.link(quorum, content->second.bytes, *deal_);
  if (!link.ok()) return Verdict::BadCertificate;
  if (from != self_) {
    take_link(*link);
    settle_state();
    return Verdict::Taken;
  }
  // The dealing of the round that ends is what its speakers are found by.
  const auto deal = deal_;
  const auto group = group_;
  take_link(*link);
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

void GroupedNode::take_link(const GroupedLinkPtr& link) {
  const GroupedBody& body = *link->body;
  if (own_) {
    bool in = false, group_in = false;
    for (const GroupResult& result : body.groups) {
      if (is_member() && result.group == group_) group_in = true;
      for (const RoundContributor& c : result.certificate.body.contributors)
        in = in || (body.round == own_->round && c.payload == own_->payload);
    }
    if (in)
      ++counters_.contributed;
    else
      ++counters_.left_out;
    counted_ = counted_ || in;
    group_left_out_ = group_left_out_ || (!in && !group_in);
  }
  tip_gathering_ = {};
  tip_ = {body.round, link->tip, body.anchor, body.tokens, link->roster};
  links_.push_back(link);
  if (links_.size() > links_kept) links_.pop_front();
  open_round();
}

Expected<Bytes> GroupedNode::on_chain(ByteSpan bytes) {
  NS_ASSIGN_OR_RETURN(const ChainRequest request, decode_chain_request(bytes));
  if (request.slot != options_.rules.slot)
    return make_error(ErrorCode::NotFound, "this node does not hold the slot");
  std::vector<std::pair<const RoundQuorum*, const Bytes*>> links;
  std::size_t size = 0;
  bool more = false;
  for (const GroupedLinkPtr& link : links_) {
    if (link->body->round < request.from) continue;
    // Each needs the one before it.
    if (links.empty() && link->body->round != request.from) break;
    size += link->content->size() + 66 * link->certificate.signatures.size() + 256;
    if (!links.empty() && size > max_link_answer / 2) {
      more = true;
      break;
    }
    links.emplace_back(&link->certificate, &*link->content);
  }
  return encode_link_answer(more, links);
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

void GroupedNode::poll() {
  if (!poll_is_due()) return;
  for (const net::NodeId& id : some_members(!is_member() || provisional_ ? 3 : 1))
    if (const auto contact = services_.peers.find(id))
      ask_status(*contact, [this, id](const RoundStatus& status) {
        if (status.genesis == options_.genesis.tip && status.round > tip_.round) sync_from(id);
      });
}

void GroupedNode::sync_from(const net::NodeId& id) {
  if (syncing_ || id == self_) return;
  const auto contact = services_.peers.find(id);
  if (!contact) return;
  syncing_ = true;
  const Bytes request = encode_chain_request({options_.rules.slot, round_});
  services_.caller.call(*contact, net::Method::RoundChain, request,
                        net::call_deadline(options_.fetch.allowed, request.size(), max_link_answer / 8),
                        guarded([this, id](Expected<Bytes> answer) { take_links(id, std::move(answer)); }));
}

void GroupedNode::take_links(const net::NodeId& from, Expected<Bytes> answer) {
  syncing_ = false;
  if (!answer.ok()) return;
  counters_.bytes_received += answer->size();
  auto links = decode_link_answer(*answer);
  if (!links.ok()) return;
  bool more = links->more;
  for (GroupedLinkBytes& bytes : links->links) {
    if (bytes.certificate.body.round < round_) continue;
    const auto link = commons_.link(bytes.certificate, commons_.keep(std::move(bytes.content)), *deal_);
    if (!link.ok()) {
      services_.logger.warning("rounds", link.error().describe());
      more = false;
      break;
    }
    take_link(*link);
  }
  if (more) return sync_from(from);
  settle_state();
}

}  // namespace neuroshard::rounds
