// RoundNode: what it lends to the agreement. Proposals are judged by what this node holds and computes
// itself.
#include <algorithm>
#include <set>

#include "core/crypto/hash.h"
#include "core/rounds/detail/outbox_keys.h"
#include "core/rounds/node.h"

namespace neuroshard::rounds {
namespace {

constexpr std::size_t computed_kept = 2;      // results hold a whole state each
constexpr std::uint64_t slowest_line = 1000;  // bytes a millisecond

// Tokens that count for the length of a history: a liar's are capped as its weight is.
std::uint64_t counted_tokens(const std::vector<RoundContributor>& contributors, std::uint64_t most) {
  std::uint64_t sum = 0;
  for (const RoundContributor& c : contributors) sum += std::min(c.tokens, most);
  return sum;
}

}  // namespace

Hash256 RoundNode::step_key(std::uint64_t round, const std::vector<RoundContributor>& contributors) {
  Bytes bytes;
  append_le(bytes, round);
  for (const RoundContributor& c : contributors) {
    append_le(bytes, c.member);
    append_le(bytes, c.tokens);
    bytes.insert(bytes.end(), c.payload.begin(), c.payload.end());
  }
  return crypto::sha256(bytes);
}

void RoundNode::broadcast(const RoundItem& item) {
  outbox_.put(key_of(item), item, others());
}

void RoundNode::remember(const AgreementMemory& memory, std::function<void()> then) {
  memory_ = memory;
  memory_round_ = round_;
  save(guarded([this, round = round_, then = std::move(then)] {
    if (round == round_ && agreement_) then();
  }));
}

void RoundNode::judge(const RoundBody& body) {
  judging_[body_hash(body)] = {body, false};
  // Not from within the agreement: the answer may change it.
  static_cast<void>(services_.executor.post(guarded([this] { review(); })));
}

void RoundNode::make_body() {
  want_body_ = true;
  static_cast<void>(services_.executor.post(guarded([this] { try_make_body(); })));
}

void RoundNode::certified(const RoundCertificate& certificate) {
  static_cast<void>(services_.executor.post(guarded([this, certificate] {
    if (take_certificate(certificate).ok()) settle_state();
  })));
}

bool RoundNode::body_follows(const RoundBody& body) const {
  const RoundBody& tip = chain_->tip();
  if (body.slot != options_.rules.slot || body.round != round_ || body.previous != chain_->tip_hash() ||
      body.members != chain_->members() || body.contributors.empty() ||
      body.tokens != tip.tokens + counted_tokens(body.contributors, options_.rules.most_tokens))
    return false;
  for (const RoundChange& change : body.changes) {
    const bool member = member_index(body.members, crypto::node_id(change.key)) < body.members.size();
    if (member != (change.kind == RoundChange::Kind::Leave) ||
        !change_holds(change, body.slot, round_, network_))
      return false;
  }
  return true;
}

RoundNode::Finding RoundNode::examine(const RoundBody& body) {
  if (!body_follows(body)) return Finding::Wrong;
  bool wait = false;
  std::size_t full = 0;
  std::set<Hash256> payloads;
  for (const RoundContributor& c : body.contributors) {
    const net::NodeId& id = body.members[c.member].id;
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
  if (early && !closed_) wait = true;
  return wait || !state_checked_ || state_round_ + 1 != round_ ? Finding::Wait : Finding::Compute;
}

void RoundNode::review() {
  if (!agreement_ || !contributions_ || !chain_) return;
  std::vector<std::pair<Hash256, bool>> found;
  for (auto& [hash, judging] : judging_) {
    if (judging.computing) continue;
    const Finding finding = examine(judging.body);
    if (finding == Finding::Wait) continue;
    if (finding == Finding::Wrong) {
      found.emplace_back(hash, false);
      continue;
    }
    judging.computing = true;
    compute(judging.body.contributors,
            [this, hash = hash, anchor = judging.body.anchor](const Expected<StepResult>& step) {
              if (judging_.erase(hash) == 0 || !agreement_) return;
              const bool right = step.ok() && step->hash == anchor && step->unreadable.empty();
              // Whose anchor is wrong, the leader's or this node's?
              if (!right) check_own_state([] {});
              if (agreement_) agreement_->judged(hash, right);
            });
  }
  for (const auto& [hash, right] : found) {
    judging_.erase(hash);
    agreement_->judged(hash, right);
  }
}

// Nothing more is on its way. Payloads are waited for while they move, as long as a round takes or a line of
// 8 Mbit/s needs to give its own to all, so that nobody holds a round up by dripping.
bool RoundNode::contributions_are_late() {
  const MonotonicTime now = services_.clock.monotonic_now();
  if (const std::uint64_t fetched = fetcher_.bytes_received(); fetched != fetched_bytes_) {
    fetched_bytes_ = fetched;
    fetched_at_ = now;
  }
  if (now - closed_at_ < options_.grace) return false;
  const std::uint64_t bytes =
      chain_->members().size() * outer::max_payload_bytes(options_.rules.codec, options_.rules.values);
  const Duration slowest = std::chrono::milliseconds(bytes / slowest_line);
  const bool moving = contributions_->announced() > contributions_->usable_count() &&
                      now - fetched_at_ < options_.grace && now - closed_at_ < std::max(deadline(), slowest);
  return !moving;
}

void RoundNode::try_make_body() {
  if (!want_body_ || making_body_ || !agreement_ || !state_checked_ || state_round_ + 1 != round_) return;
  const bool late = closed_ && contributions_are_late();
  const std::size_t usable = contributions_->usable_count();
  const std::vector<RoundMember>& members = chain_->members();
  // Who goes has said so after its contribution, or makes none.
  const bool all = std::all_of(members.begin(), members.end(), [this](const RoundMember& m) {
    return contributions_->usable(m.id) || (goes(m.id) && contributions_->find(m.id) == nullptr);
  });
  if (usable == 0 || (!late && !all)) return;
  making_body_ = true;
  RoundBody body;
  body.slot = options_.rules.slot;
  body.round = round_;
  body.previous = chain_->tip_hash();
  body.members = chain_->members();
  for (std::size_t i = 0; i < body.members.size(); ++i) {
    if (!contributions_->usable(body.members[i].id)) continue;
    const Contribution& c = contributions_->find(body.members[i].id)->contribution;
    body.contributors.push_back({static_cast<std::uint16_t>(i), c.steps, c.tokens, c.payload});
  }
  body.tokens = chain_->tip().tokens + counted_tokens(body.contributors, options_.rules.most_tokens);
  body.changes = changes_for_body();
  compute(body.contributors, [this, body](const Expected<StepResult>& step) mutable {
    making_body_ = false;
    if (!agreement_ || body.round != round_) return;
    if (!step.ok()) {
      services_.logger.warning("rounds", step.error().describe());
      return;
    }
    if (!step->unreadable.empty()) {
      for (const net::NodeId& id : step->unreadable) contributions_->exclude(id);
      return;  // again without them, at the next look
    }
    want_body_ = false;
    body.anchor = step->hash;
    agreement_->propose(body);
  });
}

std::vector<RoundChange> RoundNode::changes_for_body() const {
  std::vector<RoundChange> changes;
  for (const auto& [id, change] : changes_) {
    const bool member = member_index(chain_->members(), id) < chain_->members().size();
    if (changes.size() < max_round_changes && member == (change.kind == RoundChange::Kind::Leave) &&
        change_holds(change, options_.rules.slot, round_, network_))
      changes.push_back(change);
  }
  return changes;
}

void RoundNode::compute(const std::vector<RoundContributor>& contributors, Computed done) {
  const Hash256 key = step_key(round_, contributors);
  for (auto at = computing_.begin(); at != computing_.end();) {
    const bool old = at->second->round != round_ || (computing_.size() >= computed_kept && at->first != key);
    at = old && at->second->result ? computing_.erase(at) : std::next(at);
  }
  std::shared_ptr<Computing>& entry = computing_[key];
  if (entry && entry->result) {
    const auto held = entry;
    static_cast<void>(
        services_.executor.post(guarded([held, done = std::move(done)] { done(*held->result); })));
    return;
  }
  if (entry) {
    entry->waiting.push_back(std::move(done));
    return;
  }
  entry = std::make_shared<Computing>();
  entry->round = round_;
  entry->waiting.push_back(std::move(done));
  std::vector<StepInput> inputs;
  for (const RoundContributor& c : contributors) {
    const net::NodeId& id = chain_->members()[c.member].id;
    inputs.push_back({id, c.tokens, contributions_->find(id)->payload});
  }
  services_.work.run(
      [entry = entry, inputs = std::move(inputs), rules = options_.outer, before = state_,
       identity = anchor_identity(network_, options_.outer, options_.rules.slot, round_),
       most = options_.rules.most_tokens] {
        entry->result.emplace(make_step(rules, identity, *before, inputs, most));
      },
      guarded([entry = entry] {
        const std::vector<Computed> waiting = std::move(entry->waiting);
        for (const Computed& done : waiting) done(*entry->result);
      }));
}

void RoundNode::ask_for_payload(const net::NodeId& owner) {
  const auto* entry = contributions_->find(owner);
  if (entry == nullptr || entry->payload || !asked_.insert(entry->contribution.payload).second) return;
  // From its sender first, then from whoever else may have it already.
  std::vector<net::NodeId> sources = others();
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

void RoundNode::ask_for_contribution(const Hash256& payload) {
  if (!asked_.insert(payload).second) return;
  std::vector<net::NodeId> sources = others();
  const net::NodeId leader = chain_->members()[agreement_->leader(agreement_->view())].id;
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

}  // namespace neuroshard::rounds
