// RoundNode: answering others and catching up with them.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/check.h"
#include "core/crypto/hash.h"
#include "core/crypto/merkle.h"
#include "core/rounds/detail/outbox_keys.h"
#include "core/rounds/node.h"

namespace neuroshard::rounds {
namespace {

constexpr Duration fetch_pause = std::chrono::seconds(2);
constexpr std::size_t chain_answer_bytes = 64u << 10;  // what a deadline allows for
constexpr std::size_t small_answer = 256;

template <class... Parts>
struct Overloaded : Parts... {
  using Parts::operator()...;
};
template <class... Parts>
Overloaded(Parts...) -> Overloaded<Parts...>;

}  // namespace

bool RoundNode::handles(net::Method method) {
  return method == net::Method::RoundPost || method == net::Method::RoundStatus ||
         method == net::Method::RoundChain || method == net::Method::RoundFetch;
}

void RoundNode::on_call(const net::Caller& from, net::Method method, ByteSpan request,
                        const net::Respond& respond) {
  counters_.bytes_received += request.size();
  switch (method) {
    case net::Method::RoundPost: {
      const PostAnswer answer = on_post(from.id, request);
      if (answer.verdict != Verdict::Taken && answer.verdict != Verdict::Known)
        ++counters_.refused[static_cast<std::size_t>(answer.verdict)];
      respond(encode_post_answer(answer));
      return;
    }
    case net::Method::RoundStatus: {
      const auto slot = decode_slot(request);
      if (slot.ok() && *slot == options_.rules.slot)
        respond(encode_status(status()));
      else
        respond(make_error(ErrorCode::NotFound, "this node does not hold the slot"));
      return;
    }
    case net::Method::RoundChain: {
      const auto asked = decode_chain_request(request);
      if (!asked.ok() || asked->slot != options_.rules.slot || !chain_) {
        respond(make_error(ErrorCode::NotFound, "this node has no certificates of the slot"));
        return;
      }
      const Bytes answer = encode_chain_answer(chain_->answer(asked->from));
      counters_.bytes_sent += answer.size();
      respond(answer);
      return;
    }
    default: break;
  }
  Expected<Bytes> piece = on_fetch(request);
  if (piece.ok()) counters_.bytes_sent += piece->size();
  respond(std::move(piece));
}

PostAnswer RoundNode::on_post(const net::NodeId& from, ByteSpan bytes) {
  auto item = decode_item(bytes);
  if (!item.ok()) return {Verdict::Malformed, round_};
  if (!chain_) return {Verdict::Busy, 0};
  const RoundSlot& slot = options_.rules.slot;
  const Verdict verdict =
      std::visit(Overloaded{[&](ContributionPost& post) {
                              if (post.contribution.slot != slot) return Verdict::OtherSlot;
                              const Verdict here = at_round(post.contribution.round, from);
                              return here == Verdict::Taken ? on_contribution(std::move(post)) : here;
                            },
                            [&](ProposalPost& post) {
                              if (post.body.slot != slot) return Verdict::OtherSlot;
                              const Verdict here = at_round(post.body.round, from);
                              if (here != Verdict::Taken) return here;
                              return agreement_ ? agreement_->on_proposal(from, post) : Verdict::Busy;
                            },
                            [&](VotePost& post) {
                              if (post.vote.slot != slot) return Verdict::OtherSlot;
                              const Verdict here = at_round(post.vote.round, from);
                              if (here != Verdict::Taken) return here;
                              return agreement_ ? agreement_->on_vote(post) : Verdict::Busy;
                            },
                            [&](NewViewPost& post) {
                              if (post.slot != slot) return Verdict::OtherSlot;
                              const Verdict here = at_round(post.round, from);
                              if (here != Verdict::Taken) return here;
                              return agreement_ ? agreement_->on_new_view(from, post) : Verdict::Busy;
                            },
                            [&](CertificatePost& post) {
                              const auto taken = take_certificate(post.certificate);
                              if (taken.ok()) return Verdict::Taken;
                              return taken.error().code == ErrorCode::AlreadyExists ? Verdict::Known
                                                                                    : Verdict::BadCertificate;
                            },
                            [&](ChangePost& post) {
                              if (post.slot != slot) return Verdict::OtherSlot;
                              const net::NodeId id = crypto::node_id(post.change.key);
                              // A node's own word, from itself: others' are in certificates.
                              if (id != from || !change_holds(post.change, slot, round_, network_))
                                return Verdict::BadSignature;
                              if (changes_.size() >= max_round_changes && changes_.count(id) == 0)
                                return Verdict::Busy;
                              changes_[id] = post.change;
                              static_cast<void>(services_.executor.post(guarded([this] { advance(); })));
                              return Verdict::Taken;
                            },
                            [&](EvidencePost& post) {
                              const Verdict here = at_round(post.first.round, from);
                              if (here != Verdict::Taken) return here;
                              const Verdict taken = contributions_->take_evidence(post);
                              if (taken == Verdict::Taken) ++counters_.evidence;
                              return taken;
                            }},
                 *item);
  return {verdict, round_};
}

Verdict RoundNode::at_round(std::uint64_t round, const net::NodeId& from) {
  if (round < round_) return Verdict::PastRound;
  if (round == round_) return Verdict::Taken;
  if (const auto contact = services_.peers.find(from)) sync_from(*contact);
  return Verdict::LaterRound;
}

Verdict RoundNode::on_contribution(ContributionPost post) {
  const Verdict verdict = contributions_->take(post.contribution);
  if (verdict == Verdict::TwoPayloads && !evidence_sent_ && agreement_) {
    const auto evidence = contributions_->evidence();
    if (!evidence.empty()) {
      evidence_sent_ = true;
      ++counters_.evidence;
      outbox_.put(evidence_key, evidence.front(), others());
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

Expected<Bytes> RoundNode::on_fetch(ByteSpan bytes) const {
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
    return missing;
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

void RoundNode::poll() {
  const MonotonicTime now = services_.clock.monotonic_now();
  if (now < next_poll_) return;
  next_poll_ = now + options_.poll * 3 / 4 +
               Duration(static_cast<Duration::rep>(
                   rng_.below(static_cast<std::uint64_t>(options_.poll.count() / 2) + 1)));
  std::vector<net::Contact> asked;
  if (chain_) {
    const std::vector<net::NodeId> members = others();
    if (!members.empty()) {
      if (const auto contact = services_.peers.find(members[rng_.below(members.size())]))
        asked.push_back(*contact);
    }
  }
  if (!chain_ || !is_member() || chain_->alone(self_) || provisional_)
    for (const net::Contact& contact : services_.peers.some()) asked.push_back(contact);
  for (const net::Contact& contact : asked) {
    const Bytes request = encode_slot(options_.rules.slot);
    services_.caller.call(contact, net::Method::RoundStatus, request,
                          net::call_deadline(options_.fetch.allowed, request.size(), small_answer),
                          guarded([this, contact](Expected<Bytes> answer) {
                            if (!answer.ok()) return;
                            const auto status = decode_status(*answer);
                            if (status.ok()) consider(contact, *status);
                          }));
  }
}

void RoundNode::consider(const net::Contact& from, const RoundStatus& other) {
  if (other.genesis == Hash256{}) return;  // knows no more than this node
  if (from.id != self_) heard_ = services_.clock.monotonic_now();
  if (!chain_) {
    sync_from(from);
    return;
  }
  if (other.genesis == chain_->genesis()) {
    if (other.round > chain_->tip().round) sync_from(from);
    return;
  }
  // Two histories meet. Only one that nobody else ever shared is given up.
  if (!options_.genesis && chain_->alone(self_) && better_branch(other, status())) {
    services_.logger.info("rounds",
                          "another history of this network has more work in it: this node joins it");
    sync_from(from, true);
  }
}

void RoundNode::sync_from(const net::Contact& from, bool afresh) {
  if (syncing_) return;
  syncing_ = true;
  const Bytes request =
      encode_chain_request({options_.rules.slot, chain_ && !afresh ? chain_->tip().round + 1 : 0});
  services_.caller.call(from, net::Method::RoundChain, request,
                        net::call_deadline(options_.fetch.allowed, request.size(), chain_answer_bytes),
                        guarded([this, from, afresh](Expected<Bytes> answer) {
                          syncing_ = false;
                          take_chain(from, afresh, std::move(answer));
                        }));
}

void RoundNode::take_chain(const net::Contact& from, bool afresh, Expected<Bytes> answer) {
  if (!answer.ok()) return;
  counters_.bytes_received += answer->size();
  const auto chain = decode_chain_answer(*answer);
  if (!chain.ok() || chain->certificates.empty()) return;
  std::size_t i = 0;
  if (!chain_ || afresh) {
    const RoundBody& genesis = chain->certificates.front().body;
    if (genesis.round != 0 || genesis.slot != options_.rules.slot ||
        (options_.genesis && !(genesis == *options_.genesis)))
      return;
    if (chain_) give_up_history();
    chain_.emplace(network_, genesis);
    open_round();
    i = 1;
  }
  for (; i < chain->certificates.size(); ++i) {
    const auto taken = take_certificate(chain->certificates[i]);
    if (!taken.ok() && taken.error().code != ErrorCode::AlreadyExists) {
      services_.logger.warning("rounds", taken.error().describe());
      return;
    }
  }
  if (chain->more) {
    sync_from(from);
    return;
  }
  settle_state();
}

void RoundNode::give_up_history() {
  provisional_ = true;  // what was trained since the last own anchor goes along
  counted_ = false;
  state_.reset();
  state_checked_ = false;
  served_.clear();
  computing_.clear();
  contributions_.reset();
  own_.reset();
  memory_ = {};
  memory_round_ = saved_chain_ = 0;
}

Expected<void> RoundNode::take_certificate(const RoundCertificate& certificate) {
  if (!chain_) return make_error(ErrorCode::Unavailable, "this node has no certificates yet");
  NS_RETURN_IF_ERROR(chain_->add(certificate));
  if (own_) {
    const auto& set = certificate.body.contributors;
    const bool in = certificate.body.round == own_->round &&
                    std::any_of(set.begin(), set.end(),
                                [this](const RoundContributor& c) { return c.payload == own_->payload; });
    if (in)
      ++counters_.contributed;
    else
      ++counters_.left_out;
    // Its round's certificate is not shown any more: it may well have counted.
    const bool unknown = certificate.body.round > own_->round;
    counted_ = counted_ || in || unknown;
  }
  open_round();
  return {};
}

// Towards the state of the newest certificate, by the shortest way.
void RoundNode::settle_state() {
  if (!chain_ || fetching_state_) return;
  if (state_ && state_checked_ && state_round_ == chain_->tip().round) {
    begin_training();
    return;
  }
  if (take_known_state() || step_to_tip() || services_.clock.monotonic_now() < next_fetch_) return;
  // Who is no member fetches one state, which shows that it can, and asks to join; not one in every round.
  if (!is_member() && (state_checked_ || !options_.join || leaving_)) return;
  fetch_state();
}

// What the node was started with, if that is it.
bool RoundNode::take_known_state() {
  if (!initial_.state || initial_.round != chain_->tip().round) return false;
  fetching_state_ = true;
  auto leaves = std::make_shared<std::vector<Hash256>>();
  const auto identity = anchor_identity(network_, options_.outer, options_.rules.slot, initial_.round);
  const Anchor state = std::exchange(initial_.state, nullptr);
  services_.work.run(
      [leaves, identity, state] {
        *leaves = outer::anchor_leaves(identity, {state->weights, state->momentum, state->bias});
      },
      guarded([this, leaves, state, round = initial_.round] {
        fetching_state_ = false;
        if (chain_ && chain_->tip().round == round && crypto::merkle_root(*leaves) == chain_->tip().anchor)
          adopt(state, std::move(*leaves), nullptr);
        else
          settle_state();
      }));
  return true;
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
  fetching_state_ = true;
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
       identity = anchor_identity(network_, options_.outer, options_.rules.slot, tip.round),
       most = options_.rules.most_tokens] {
        result->emplace(make_step(rules, identity, *before, inputs, most));
      },
      guarded([this, result, round = tip.round] { stepped(round, **result); }));
  return true;
}

void RoundNode::stepped(std::uint64_t round, const Expected<StepResult>& step) {
  fetching_state_ = false;
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
    services_.logger.warning("rounds", fmt::format("this node's anchor of round {} is not the certified one: "
                                                   "that is fetched from other members",
                                                   round));
    if (step.ok()) state_hash_ = step->hash;
  }
  settle_state();
}

void RoundNode::adopt(Anchor state, std::vector<Hash256> leaves, const StepResult* step) {
  const RoundBody& tip = chain_->tip();
  state_ = std::move(state);
  state_round_ = tip.round;
  state_hash_ = tip.anchor;
  state_checked_ = true;
  if (served_.empty() || served_.front().hash != tip.anchor)
    served_.push_front({tip.round, tip.anchor, state_, std::move(leaves)});
  if (served_.size() > 2) served_.pop_back();
  computing_.clear();
  if (step != nullptr) {
    ++counters_.certified;
    if (counted_) counters_.waiting += services_.clock.monotonic_now() - contributed_at_;
  }
  if (on_certified_) on_certified_(chain_->tip_certificate(), state_, step);
  save_chain();
  begin_training();
}

std::vector<net::NodeId> RoundNode::sources() {
  std::vector<net::NodeId> ids = others();
  for (const RoundContributor& c : chain_->tip().contributors) {
    const net::NodeId& id = chain_->tip().members[c.member].id;
    if (id != self_ && std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  }
  for (std::size_t i = ids.size(); i > 1; --i) std::swap(ids[i - 1], ids[rng_.below(i)]);
  return ids;
}

void RoundNode::fetch_state() {
  const RoundBody& tip = chain_->tip();
  fetching_state_ = true;
  fetcher_.anchor(options_.rules.slot, tip.anchor,
                  anchor_identity(network_, options_.outer, options_.rules.slot, tip.round),
                  options_.rules.values, options_.bias_values, sources(),
                  guarded([this, hash = tip.anchor](Expected<std::shared_ptr<OuterState>> state) {
                    fetching_state_ = false;
                    next_fetch_ = services_.clock.monotonic_now() + fetch_pause;
                    if (!state.ok() || !chain_) return;
                    if (hash != chain_->tip().anchor) {  // a round passed meanwhile
                      next_fetch_ = {};
                      settle_state();
                      return;
                    }
                    ++counters_.fetched_anchors;
                    const OuterState& s = **state;
                    auto leaves = outer::anchor_leaves(
                        anchor_identity(network_, options_.outer, options_.rules.slot, chain_->tip().round),
                        {s.weights, s.momentum, s.bias});
                    adopt(std::move(*state), std::move(leaves), nullptr);
                  }));
}

void RoundNode::found_alone() {
  const Duration wait = services_.peers.nobody() ? options_.found_alone_soon : options_.found_alone_after;
  if (options_.genesis || fetching_state_ || services_.clock.monotonic_now() - started_ < wait ||
      initial_.round != 0 || !initial_.state)
    return;
  fetching_state_ = true;
  auto hash = std::make_shared<Hash256>();
  services_.work.run(
      [hash, state = initial_.state,
       identity = anchor_identity(network_, options_.outer, options_.rules.slot, 0)] {
        *hash = hash_of(identity, *state);
      },
      guarded([this, hash] {
        fetching_state_ = false;
        if (chain_) return;
        chain_.emplace(network_, genesis_body(options_.rules.slot, *hash, {services_.key.public_key()}));
        open_round();
        settle_state();
      }));
}

}  // namespace neuroshard::rounds
