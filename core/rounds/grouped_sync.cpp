// GroupedNode: answering others and catching up with them.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/check.h"
#include "core/crypto/merkle.h"
#include "core/net/peer_channel.h"
#include "core/rounds/detail/grouped_level.h"
#include "core/rounds/detail/reader.h"

namespace neuroshard::rounds {
namespace {

constexpr std::size_t links_kept = 64;
constexpr std::size_t small_answer = 256;
constexpr Duration fetch_pause = std::chrono::seconds(2);

template <class... Parts>
struct Overloaded : Parts... {
  using Parts::operator()...;
};
template <class... Parts>
Overloaded(Parts...) -> Overloaded<Parts...>;

}  // namespace

void GroupedNode::on_call(const net::Caller& from, net::Method method, ByteSpan request,
                          const net::Respond& respond) {
  counters_.bytes_received += request.size();
  if (method == net::Method::RoundPost) {
    const PostAnswer answer = on_post(from.id, request);
    if (answer.verdict != Verdict::Taken && answer.verdict != Verdict::Known)
      ++counters_.refused[static_cast<std::size_t>(answer.verdict)];
    respond(encode_post_answer(answer));
    return;
  }
  if (method == net::Method::RoundStatus) {
    const auto slot = decode_slot(request);
    if (slot.ok() && *slot == options_.rules.slot)
      respond(encode_status(status()));
    else
      respond(make_error(ErrorCode::NotFound, "this node does not hold the slot"));
    return;
  }
  Expected<Bytes> answer = method == net::Method::RoundChain ? on_chain(request) : on_fetch(request);
  if (answer.ok()) counters_.bytes_sent += answer->size();
  respond(std::move(answer));
}

PostAnswer GroupedNode::on_post(const net::NodeId& from, ByteSpan bytes) {
  auto post = decode_grouped_post(bytes);
  if (!post.ok()) return {Verdict::Malformed, round_};
  const Verdict verdict = dispatch(from, std::move(*post));
  return {verdict, round_};
}

Verdict GroupedNode::dispatch(const net::NodeId& from, GroupedPost all) {
  const auto& slot = options_.rules.slot;
  auto& top = top_level_->agreement;
  return std::visit(
      Overloaded{[&](GroupPost& post) { return on_group_item(from, post.item); },
                 [&](GroupedProposal& post) {
                   // Whose round it is stands in the content.
                   Reader in(ByteSpan(post.content).subspan(std::min<std::size_t>(6, post.content.size())));
                   const RoundSlot of = in.slot();
                   const auto round = in.number<std::uint64_t>();
                   if (!in.good()) return Verdict::Malformed;
                   if (of != slot) return Verdict::OtherSlot;
                   const Verdict here = at_round(round, from);
                   if (here != Verdict::Taken) return here;
                   std::optional<GroupedProposal> copy;
                   if (post.relay) copy = post;
                   const Verdict taken = on_proposal(std::move(post));
                   if (copy && taken == Verdict::Taken) pass_on(top_proposal_key, std::move(*copy));
                   return taken;
                 },
                 [&](GroupedLock& post) {
                   if (post.quorum.body.slot != slot) return Verdict::OtherSlot;
                   const Verdict here = at_round(post.quorum.body.round, from);
                   if (here != Verdict::Taken) return here;
                   if (!top) return Verdict::Busy;
                   const Verdict taken = top->on_lock(post.quorum);
                   if (post.relay && taken == Verdict::Taken) pass_on(top_lock_key, std::move(post));
                   return taken;
                 },
                 [&](GroupedCertificate& post) {
                   if (post.quorum.body.slot != slot) return Verdict::OtherSlot;
                   const Verdict here = at_round(post.quorum.body.round, from);
                   if (here != Verdict::Taken) return here;
                   const auto fellows_before = other_fellows();
                   const Verdict taken = on_certificate(from, post.quorum);
                   if (post.relay && taken == Verdict::Taken) {
                     post.relay = false;
                     outbox_.put(top_certificate_key + pass_on_key,
                                 std::make_shared<const Bytes>(encode_grouped_post(std::move(post))),
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

Verdict GroupedNode::at_round(std::uint64_t round, const net::NodeId& from) {
  if (round < round_) return Verdict::PastRound;
  if (round == round_) return Verdict::Taken;
  sync_from(from);
  return Verdict::LaterRound;
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
  std::vector<net::NodeId> speakers;
  for (std::size_t g = 0; g < deal->groups.size(); ++g)
    for (std::size_t which = 0; which < Deal::speakers_at_once; ++which)
      if (g != group) speakers.push_back(deal->roster->members[deal->speaker(g, quorum.view, which)].id);
  outbox_.put(top_certificate_key,
              std::make_shared<const Bytes>(encode_grouped_post(GroupedCertificate{true, quorum})), speakers);
  std::vector<net::NodeId> own;
  for (const RoundMember& member : *deal->groups[group])
    if (member.id != self_) own.push_back(member.id);
  outbox_.put(top_certificate_key + pass_on_key,
              std::make_shared<const Bytes>(encode_grouped_post(GroupedCertificate{false, quorum})), own);
  settle_state();
  return Verdict::Taken;
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
  tip_here_ = 0;
  tip_ = {body.round, link->tip, body.anchor, body.tokens, link->roster};
  links_.push_back(link);
  if (links_.size() > links_kept) links_.pop_front();
  open_round();
}

Expected<Bytes> GroupedNode::on_chain(ByteSpan bytes) const {
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

Expected<Bytes> GroupedNode::on_fetch(ByteSpan bytes) const {
  NS_ASSIGN_OR_RETURN(const FetchRequest request, decode_fetch_request(bytes));
  const Error missing = make_error(ErrorCode::NotFound, "this node does not hold what is asked for");
  if (request.slot != options_.rules.slot) return missing;
  const auto cut = [&](ByteSpan whole) -> Expected<Bytes> {
    if (request.place >= whole.size()) return missing;
    const ByteSpan rest = whole.subspan(static_cast<std::size_t>(request.place));
    return encode_fetch_answer(whole.size(), rest.first(std::min(rest.size(), net::chunk_bytes)));
  };
  if (request.what == FetchRequest::What::Payload || request.what == FetchRequest::What::Contribution) {
    for (const auto* round : {&contributions_, &previous_contributions_}) {
      const auto* entry = *round ? (*round)->find_payload(request.hash) : nullptr;
      if (entry == nullptr) continue;
      if (request.what == FetchRequest::What::Contribution)
        return cut(encode_contribution(entry->contribution));
      if (entry->payload) return cut(*entry->payload);
    }
    const auto aggregate = aggregates_.find(request.hash);
    return aggregate == aggregates_.end() ? Expected<Bytes>(missing) : cut(*aggregate->second.payload);
  }
  const auto at = std::find_if(served_.begin(), served_.end(),
                               [&request](const Served& s) { return s.hash == request.hash; });
  if (at == served_.end()) return missing;
  if (request.what == FetchRequest::What::Leaves)
    return cut({at->leaves.front().data(), at->leaves.size() * sizeof(Hash256)});
  if (request.place == 0) return missing;  // the header: everybody makes it
  std::uint64_t leaf = request.place - 1;
  for (const std::vector<float>* part : {&at->state->weights, &at->state->momentum, &at->state->bias}) {
    const ByteSpan all = as_bytes(Span<const float>(*part));
    const std::uint64_t chunks = (all.size() + outer::anchor_chunk_bytes - 1) / outer::anchor_chunk_bytes;
    if (leaf < chunks) {
      const ByteSpan rest = all.subspan(static_cast<std::size_t>(leaf) * outer::anchor_chunk_bytes);
      const ByteSpan chunk = rest.first(std::min(rest.size(), outer::anchor_chunk_bytes));
      return encode_fetch_answer(chunk.size(), chunk);
    }
    leaf -= chunks;
  }
  return missing;
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
  const MonotonicTime now = services_.clock.monotonic_now();
  if (now < next_poll_) return;
  next_poll_ = now + options_.poll * 3 / 4 +
               Duration(static_cast<Duration::rep>(
                   rng_.below(static_cast<std::uint64_t>(options_.poll.count() / 2) + 1)));
  for (const net::NodeId& id : some_members(!is_member() || provisional_ ? 3 : 1)) {
    const auto contact = services_.peers.find(id);
    if (!contact) continue;
    const Bytes request = encode_slot(options_.rules.slot);
    services_.caller.call(
        *contact, net::Method::RoundStatus, request,
        net::call_deadline(options_.fetch.allowed, request.size(), small_answer),
        guarded([this, id](Expected<Bytes> answer) {
          if (!answer.ok()) return;
          const auto status = decode_status(*answer);
          if (status.ok() && status->genesis == options_.genesis.tip && status->round > tip_.round)
            sync_from(id);
        }));
  }
}

void GroupedNode::sync_from(const net::NodeId& id) {
  if (syncing_ || id == self_) return;
  const auto contact = services_.peers.find(id);
  if (!contact) return;
  syncing_ = true;
  const Bytes request = encode_chain_request({options_.rules.slot, round_});
  services_.caller.call(*contact, net::Method::RoundChain, request,
                        net::call_deadline(options_.fetch.allowed, request.size(), max_link_answer / 8),
                        guarded([this, id](Expected<Bytes> answer) {
                          syncing_ = false;
                          if (!answer.ok()) return;
                          counters_.bytes_received += answer->size();
                          auto links = decode_link_answer(*answer);
                          if (!links.ok()) return;
                          bool more = links->more;
                          for (GroupedLinkBytes& bytes : links->links) {
                            if (bytes.certificate.body.round < round_) continue;
                            const auto link = commons_.link(bytes.certificate,
                                                            commons_.keep(std::move(bytes.content)), *deal_);
                            if (!link.ok()) {
                              services_.logger.warning("rounds", link.error().describe());
                              more = false;
                              break;
                            }
                            take_link(*link);
                          }
                          if (more) return sync_from(id);
                          settle_state();
                        }));
}

// Towards the state of the newest certificate, by the shortest way: what was known at the start, one step
// from the aggregates, or the state itself from other members.
void GroupedNode::settle_state() {
  if (settling_) return;
  if (state_ && state_checked_ && state_round_ == tip_.round) {
    begin_training();
    return;
  }
  if (initial_.state && initial_.round == tip_.round) {
    const Anchor known = std::exchange(initial_.state, nullptr);
    auto leaves = outer::anchor_leaves(
        anchor_identity(commons_.network(), options_.outer, options_.rules.slot, tip_.round),
        {known->weights, known->momentum, known->bias});
    if (crypto::merkle_root(leaves) == tip_.anchor) return adopt(known, std::move(leaves), nullptr);
  }
  const bool next = state_ && state_checked_ && state_round_ + 1 == tip_.round && !links_.empty();
  if (next && !step_failed_) {
    const GroupedLinkPtr link = links_.back();
    if (fetch_aggregates(*link->body, &tip_here_)) {
      settling_ = true;
      anchor_of(*link->body, [this, link](const SharedStep& step) {
        settling_ = false;
        if (tip_.round != link->body->round) return settle_state();
        if (step->ok() && (*step)->hash == tip_.anchor)
          return adopt((*step)->state, (*step)->leaves, &**step);
        ++counters_.corruptions;
        state_checked_ = false;
        services_.logger.warning("rounds", fmt::format("this node's anchor of round {} is not the certified "
                                                       "one: that is fetched from other members",
                                                       tip_.round));
        settle_state();
      });
      return;
    }
    const auto gives_up = [this](const GroupResult& result) {
      const auto failed = failed_.find(result.certificate.body.anchor);
      return failed != failed_.end() && failed->second > 2;
    };
    if (std::none_of(link->body->groups.begin(), link->body->groups.end(), gives_up)) return;
    step_failed_ = true;
  }
  if (services_.clock.monotonic_now() < next_fetch_) return;
  if (!is_member() && (state_checked_ || !options_.join)) return;
  fetch_state();
}

void GroupedNode::adopt(Anchor state, std::vector<Hash256> leaves, const StepResult* step) {
  state_ = std::move(state);
  state_round_ = tip_.round;
  state_hash_ = tip_.anchor;
  state_checked_ = true;
  step_failed_ = false;
  if (served_.empty() || served_.front().hash != tip_.anchor)
    served_.push_front({tip_.anchor, state_, std::move(leaves)});
  if (served_.size() > 2) served_.pop_back();
  if (step != nullptr) {
    ++counters_.certified;
    if (counted_) counters_.waiting += services_.clock.monotonic_now() - contributed_at_;
  }
  if (on_certified_ && !links_.empty() && links_.back()->body->round == tip_.round)
    on_certified_(links_.back(), state_, step);
  group_work_.forget();
  top_work_.forget();
  if (tip_.round > 0) save_chain();
  begin_training();
}

void GroupedNode::fetch_state() {
  settling_ = true;
  std::vector<net::NodeId> sources = some_members(8);
  fetcher_.anchor(options_.rules.slot, tip_.anchor,
                  anchor_identity(commons_.network(), options_.outer, options_.rules.slot, tip_.round),
                  options_.rules.values, 0, std::move(sources),
                  guarded([this, hash = tip_.anchor](Expected<std::shared_ptr<OuterState>> state) {
                    settling_ = false;
                    next_fetch_ = services_.clock.monotonic_now() + fetch_pause;
                    if (!state.ok()) return;
                    if (hash != tip_.anchor) {  // a round passed meanwhile
                      next_fetch_ = {};
                      return settle_state();
                    }
                    ++counters_.fetched_anchors;
                    const OuterState& s = **state;
                    auto leaves = outer::anchor_leaves(
                        anchor_identity(commons_.network(), options_.outer, options_.rules.slot, tip_.round),
                        {s.weights, s.momentum, s.bias});
                    adopt(std::move(*state), std::move(leaves), nullptr);
                  }));
}

// What this node holds is held against the certificate first: a delta from another anchor helps nobody.
void GroupedNode::check_own_state(std::function<void()> when_right) {
  if (!state_) return;
  auto hash = std::make_shared<Hash256>();
  const auto identity =
      anchor_identity(commons_.network(), options_.outer, options_.rules.slot, state_round_);
  services_.work.run([hash, identity, state = state_] { *hash = hash_of(identity, *state); },
                     guarded([this, hash, state = state_, when_right = std::move(when_right)] {
                       if (state != state_) return;
                       if (*hash == state_hash_) return when_right();
                       ++counters_.corruptions;
                       services_.logger.warning(
                           "rounds",
                           fmt::format("this node's anchor of round {} is not the certified one: it "
                                       "is fetched from other members",
                                       state_round_));
                       state_.reset();
                       state_checked_ = false;
                       top_work_.forget();
                       training_ = boundary_asked_ = false;
                       served_.clear();
                       settle_state();
                     }));
}

}  // namespace neuroshard::rounds
