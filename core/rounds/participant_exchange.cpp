// RoundParticipant: what comes from the others of a round and goes to them.
#include <algorithm>

#include "core/crypto/hash.h"
#include "core/rounds/detail/outbox_keys.h"
#include "core/rounds/detail/overloaded.h"
#include "core/rounds/grouped_messages.h"
#include "core/rounds/participant.h"

namespace neuroshard::rounds {
bool RoundParticipant::handles(net::Method method) {
  return method == net::Method::RoundPost || method == net::Method::RoundStatus ||
         method == net::Method::RoundChain || method == net::Method::RoundFetch;
}

void RoundParticipant::on_call(const net::Caller& from, net::Method method, ByteSpan request,
                               const net::Respond& respond) {
  counters_.bytes_received += request.size();
  outbox_.heard(from.id);
  if (method == net::Method::RoundPost) {
    const PostAnswer answer = is_grouped_post(request) == is_grouped() ? on_post(from.id, request)
                                                                       : on_other_sort(from.id, request);
    if (answer.verdict != Verdict::Taken && answer.verdict != Verdict::Known)
      ++counters_.refused[static_cast<std::size_t>(answer.verdict)];
    respond(encode_post_answer(answer));
    return;
  }
  if (method == net::Method::RoundStatus) {
    const auto asked = decode_status_request(request);
    if (!asked.ok() || asked->slot != common_.rules.slot)
      return respond(make_error(ErrorCode::NotFound, "this node does not hold the slot"));
    if (asked->back) outbox_.again(from.id);
    return respond(encode_status(status()));
  }
  if (method == net::Method::RoundFetch) note_fetch(from.id, request);
  Expected<Bytes> answer = method == net::Method::RoundChain ? on_chain(request) : on_fetch(request);
  if (answer.ok()) counters_.bytes_sent += answer->size();
  respond(std::move(answer));
}

// Who sent it is in a round of another number of members, before or after this one.
PostAnswer RoundParticipant::on_other_sort(const net::NodeId& from, ByteSpan bytes) {
  const auto round = round_of_post(bytes);
  if (!round) return {Verdict::Malformed, round_};
  if (!chain_) return {Verdict::Busy, 0};
  if (*round < round_) return {Verdict::PastRound, round_};
  catch_up_with(from);
  return {Verdict::LaterRound, round_};
}

Verdict RoundParticipant::at_round(std::uint64_t round, const net::NodeId& from) {
  if (round < round_) return Verdict::PastRound;
  if (round == round_) return Verdict::Taken;
  catch_up_with(from);
  return Verdict::LaterRound;
}

Verdict RoundParticipant::on_item(const net::NodeId& from, RoundItem& item, RoundAgreement* agreement) {
  const RoundSlot& slot = common_.rules.slot;
  const auto vote_at = [&](const RoundSlot& of, std::uint64_t round, auto take) {
    if (of != slot) return Verdict::OtherSlot;
    const Verdict here = at_round(round, from);
    if (here != Verdict::Taken) return here;
    return agreement != nullptr ? take() : Verdict::Busy;
  };
  return std::visit(
      Overloaded{[&](ContributionPost& post) {
                   if (post.contribution.slot != slot) return Verdict::OtherSlot;
                   const Verdict here = at_round(post.contribution.round, from);
                   return here == Verdict::Taken ? on_contribution(std::move(post)) : here;
                 },
                 [&](ProposalPost& post) {
                   return vote_at(post.body.slot, post.body.round,
                                  [&] { return agreement->on_proposal(from, post); });
                 },
                 [&](VotePost& post) {
                   return vote_at(post.vote.slot, post.vote.round, [&] { return agreement->on_vote(post); });
                 },
                 [&](NewViewPost& post) {
                   return vote_at(post.slot, post.round, [&] { return agreement->on_new_view(from, post); });
                 },
                 [&](EvidencePost& post) { return on_evidence(from, post); },
                 [](CertificatePost&) { return Verdict::Malformed; },
                 [](ChangePost&) { return Verdict::Malformed; }},
      item);
}

// A node's own word, from itself: others' are in certificates.
Verdict RoundParticipant::on_change(const net::NodeId& from, const ChangePost& post, std::size_t most) {
  if (post.slot != common_.rules.slot) return Verdict::OtherSlot;
  const net::NodeId id = crypto::node_id(post.change.key);
  if (id != from) return Verdict::BadSignature;
  // It names the newest round that its sender has seen.
  if (post.change.round >= round_) return at_round(post.change.round + 1, from);
  if (round_ - post.change.round > change_life) return Verdict::PastRound;
  if (!change_holds(post.change, post.slot, round_, network_)) return Verdict::BadSignature;
  if (changes_.size() >= most && changes_.count(id) == 0) return Verdict::Busy;
  changes_[id] = post.change;
  return Verdict::Taken;
}

std::vector<RoundChange> RoundParticipant::changes_for_body(std::size_t most) const {
  std::vector<RoundChange> changes;
  for (const auto& [id, change] : changes_)
    if (changes.size() < most && is_in(id) == (change.kind == RoundChange::Kind::Leave) &&
        change_holds(change, common_.rules.slot, round_, network_))
      changes.push_back(change);
  return changes;
}

Verdict RoundParticipant::on_contribution(ContributionPost post) {
  const Verdict verdict = contributions_->take(post.contribution);
  const net::NodeId from = crypto::node_id(post.contribution.key);
  if (verdict == Verdict::TwoPayloads && contributions_->proven(from) && proven_.count(from) == 0)
    for (const EvidencePost& evidence : contributions_->evidence())
      if (evidence.first.key == post.contribution.key) take_proof(evidence, self_);
  if (verdict != Verdict::Taken && verdict != Verdict::Known) return verdict;
  if (!post.payload.empty() && crypto::sha256(post.payload) == post.contribution.payload)
    contributions_->take_payload(std::move(post.payload));
  else if (is_member())
    ask_for_payload(crypto::node_id(post.contribution.key));
  static_cast<void>(services_.executor.post(guarded([this] { advance(); })));
  return verdict;
}

Expected<Bytes> RoundParticipant::on_fetch(ByteSpan bytes) const {
  NS_ASSIGN_OR_RETURN(const FetchRequest request, decode_fetch_request(bytes));
  const Error missing = make_error(ErrorCode::NotFound, "this node does not hold what is asked for");
  if (request.slot != common_.rules.slot) return missing;
  const bool payload = request.what == FetchRequest::What::Payload;
  if (!payload && request.what != FetchRequest::What::Contribution) return state_piece(request);
  const auto cut = [&](ByteSpan whole) -> Expected<Bytes> {
    if (request.place >= whole.size()) return missing;
    const ByteSpan rest = whole.subspan(static_cast<std::size_t>(request.place));
    return encode_fetch_answer(whole.size(), rest.first(std::min(rest.size(), net::chunk_bytes)));
  };
  if (const Payload other = payload ? other_payload(request.hash) : nullptr) return cut(*other);
  for (const auto* round : {&contributions_, &previous_contributions_}) {
    const auto* entry = *round ? (*round)->find_payload(request.hash) : nullptr;
    if (entry == nullptr) continue;
    if (!payload) return cut(encode_contribution(entry->contribution));
    if (entry->payload) return cut(*entry->payload);
  }
  return missing;
}

Expected<Bytes> RoundParticipant::state_piece(const FetchRequest& request) const {
  const Error missing = make_error(ErrorCode::NotFound, "this node does not hold what is asked for");
  const auto at = std::find_if(served_.begin(), served_.end(),
                               [&request](const Served& s) { return s.hash == request.hash; });
  if (at == served_.end()) return missing;
  if (request.what == FetchRequest::What::Leaves) {
    const ByteSpan leaves(at->leaves.front().data(), at->leaves.size() * sizeof(Hash256));
    if (request.place >= leaves.size()) return missing;
    const ByteSpan rest = leaves.subspan(static_cast<std::size_t>(request.place));
    return encode_fetch_answer(leaves.size(), rest.first(std::min(rest.size(), net::chunk_bytes)));
  }
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

void RoundParticipant::shuffle(std::vector<net::NodeId>* ids) {
  for (std::size_t i = ids->size(); i > 1; --i) std::swap((*ids)[i - 1], (*ids)[rng_.below(i)]);
}

void RoundParticipant::ask_for_payloads() {
  if (!contributions_ || !is_member()) return;
  for (const auto& [id, entry] : contributions_->all()) ask_for_payload(id);
}

void RoundParticipant::ask_for_payload(const net::NodeId& owner) {
  if (!wants_payloads()) return;
  const auto* entry = contributions_->find(owner);
  if (entry == nullptr || entry->payload || !asked_.insert(entry->contribution.payload).second) return;
  fetch_payload(entry->contribution);
}

// From its sender first, then from whoever else may have it already.
void RoundParticipant::fetch_payload(const Contribution& contribution) {
  std::vector<net::NodeId> sources = others();
  shuffle(&sources);
  std::stable_partition(
      sources.begin(), sources.end(),
      [owner = crypto::node_id(contribution.key)](const net::NodeId& id) { return id == owner; });
  fetcher_.payload(
      common_.rules.slot, contribution.payload, contribution.payload_bytes, std::move(sources),
      guarded([this, round = contribution.round, hash = contribution.payload](Expected<Bytes> bytes) {
        if (round == round_) {
          asked_.erase(hash);
          if (bytes.ok() && contributions_->take_payload(std::move(*bytes))) advance();
        } else if (round + 1 == round_ && asked_before_.erase(hash) != 0) {
          const bool taken = bytes.ok() && previous_contributions_ &&
                             previous_contributions_->take_payload(std::move(*bytes));
          payload_lost_ = payload_lost_ || !taken;
          settle_state();
        }
      }));
}

void RoundParticipant::ask_for_contribution(const Hash256& payload, bool keep) {
  if (!asked_.insert(payload).second) return;
  std::vector<net::NodeId> sources = others();
  const net::NodeId first = group()[leader()].id;
  std::stable_partition(sources.begin(), sources.end(),
                        [&first](const net::NodeId& id) { return id == first; });
  fetch_contribution(round_, payload, std::move(sources), keep);
}

void RoundParticipant::fetch_contribution(std::uint64_t round, const Hash256& payload,
                                          std::vector<net::NodeId> sources, bool keep) {
  fetcher_.contribution(
      common_.rules.slot, payload, std::move(sources),
      guarded([this, round, payload, keep](Expected<Bytes> bytes) {
        const auto got = bytes.ok() ? decode_contribution(*bytes) : Expected<Contribution>(bytes.error());
        const bool right = got.ok() && got->payload == payload;
        if (round == round_) {
          asked_.erase(payload);
          if (right) on_contribution({*got, {}});
          if (right && keep && contributions_->keep_named(*got)) advance();
        } else if (round + 1 == round_ && asked_before_.erase(payload) != 0) {
          const bool kept = right && previous_contributions_ && previous_contributions_->keep_named(*got);
          payload_lost_ = payload_lost_ || !kept;
          settle_state();
        }
      }));
}

// What a quorum has prepared may be certified already, and nothing else can be before the lock on it is gone.
// Who does not find it fair, because it heard more contributions or has evidence against one, votes for it
// all the same, or a third of the members would hold up the round for ever. So all that counts is what it
// makes.
RoundParticipant::Finding RoundParticipant::examine_locked(const RoundBody& body) {
  bool wait = false;
  for (const RoundContributor& c : body.contributors) {
    const auto* entry = contributions_->find_payload(c.payload);
    if (entry == nullptr)
      ask_for_contribution(c.payload, true);
    else if (!entry->payload && asked_.insert(c.payload).second)
      fetch_payload(entry->contribution);
    wait = wait || entry == nullptr || !entry->payload;
  }
  return wait ? Finding::Wait : Finding::Compute;
}

RoundParticipant::Finding RoundParticipant::examine_contributors(const RoundBody& body) {
  bool wait = false;
  std::size_t full = 0;
  std::set<Hash256> payloads;
  for (const RoundContributor& c : body.contributors) {
    const net::NodeId& id = body.members[c.member].id;
    if (contributions_->proven(id)) return Finding::Disproved;
    if (contributions_->excluded(id) || !payloads.insert(c.payload).second) return Finding::Wrong;
    const auto* entry = contributions_->find(id);
    if (entry == nullptr || entry->contribution.payload != c.payload) {
      // Not heard of yet, or another one than this node has: then the two are evidence.
      ask_for_contribution(c.payload);
      wait = true;
      continue;
    }
    if (entry->contribution.tokens != c.tokens || entry->contribution.steps != c.steps) return Finding::Wrong;
    if (c.steps >= round_steps()) ++full;
    if (!entry->payload) {
      ask_for_payload(id);
      wait = true;
    }
  }
  // A leader leaves out what it does not hold, but not most of what others do.
  if (3 * body.contributors.size() < 2 * contributions_->usable_count()) return Finding::Wrong;
  const bool early =
      full < quorum_size(body.members.size()) && body.contributors.size() < body.members.size();
  return wait || (early && !closed_) ? Finding::Wait : Finding::Compute;
}

RoundBody RoundParticipant::body_of_usable(const Hash256& previous) const {
  RoundBody body;
  body.slot = common_.rules.slot;
  body.round = round_;
  body.previous = previous;
  body.members = group();
  for (std::size_t i = 0; i < body.members.size(); ++i) {
    if (!contributions_->usable(body.members[i].id)) continue;
    const Contribution& c = contributions_->find(body.members[i].id)->contribution;
    body.contributors.push_back({static_cast<std::uint16_t>(i), c.steps, c.tokens, c.payload});
  }
  body.tokens = counted_tokens(body.contributors);
  return body;
}

std::uint64_t RoundParticipant::counted_tokens(const std::vector<RoundContributor>& contributors) const {
  std::uint64_t sum = 0;
  for (const RoundContributor& c : contributors) sum += std::min(c.tokens, common_.rules.most_tokens);
  return sum;
}

std::vector<StepInput> RoundParticipant::inputs_of(const std::vector<RoundContributor>& contributors) const {
  std::vector<StepInput> inputs;
  for (const RoundContributor& c : contributors) {
    const net::NodeId& id = group()[c.member].id;
    inputs.push_back({id, c.tokens, contributions_->find_payload(c.payload)->payload});
  }
  return inputs;
}

Hash256 RoundParticipant::step_key(std::uint64_t round, const std::vector<RoundContributor>& contributors) {
  Bytes bytes;
  append_le(bytes, round);
  for (const RoundContributor& c : contributors) {
    append_le(bytes, c.member);
    append_le(bytes, c.tokens);
    bytes.insert(bytes.end(), c.payload.begin(), c.payload.end());
  }
  return crypto::sha256(bytes);
}

}  // namespace neuroshard::rounds
