// RoundNode: what it lends to the agreement. Proposals are judged by what this node holds and computes
// itself.
#include <algorithm>

#include "core/rounds/detail/outbox_keys.h"
#include "core/rounds/node.h"

namespace neuroshard::rounds {
namespace {

constexpr std::size_t computed_kept = 2;  // results hold a whole state each

}  // namespace

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
    if (take_link(certificate).ok()) settle_state();
  })));
}

bool RoundNode::body_follows(const RoundBody& body) const {
  const RoundBody& tip = chain_->tip();
  if (body.slot != options_.rules.slot || body.round != round_ || body.previous != chain_->tip_hash() ||
      body.members != chain_->members() || body.contributors.empty() ||
      body.tokens != tip.tokens + counted_tokens(body.contributors))
    return false;
  for (const RoundChange& change : body.changes) {
    if (is_in(crypto::node_id(change.key)) != (change.kind == RoundChange::Kind::Leave) ||
        !change_holds(change, body.slot, round_, network_))
      return false;
  }
  return true;
}

RoundNode::Finding RoundNode::examine(const RoundBody& body) {
  if (!body_follows(body)) return Finding::Wrong;
  const Finding finding = agreement_->is_locked(body) ? examine_locked(body) : examine_contributors(body);
  const bool ready = state_checked_ && state_round_ + 1 == round_;
  return finding == Finding::Compute && !ready ? Finding::Wait : finding;
}

void RoundNode::review() {
  if (!agreement_ || !contributions_ || !chain_) return;
  std::vector<std::pair<Hash256, Finding>> found;
  for (auto& [hash, judging] : judging_) {
    if (judging.computing) continue;
    const Finding finding = examine(judging.body);
    if (finding == Finding::Wait) continue;
    if (finding != Finding::Compute) {
      found.emplace_back(hash, finding);
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
  for (const auto& [hash, finding] : found) {
    judging_.erase(hash);
    if (finding == Finding::Disproved)
      agreement_->disproved(hash);
    else
      agreement_->judged(hash, false);
  }
}

void RoundNode::try_make_body() {
  if (!want_body_ || making_body_ || !agreement_ || !state_checked_ || state_round_ + 1 != round_) return;
  const bool late = closed_ && contributions_are_late();
  const std::size_t usable = contributions_->usable_count();
  if (usable == 0 || (!late && !all_usable())) return;
  making_body_ = true;
  RoundBody body = body_of_usable(chain_->tip_hash());
  body.tokens += chain_->tip().tokens;
  body.changes = changes_for_body(max_round_changes);
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
  services_.work.run(
      [entry = entry, inputs = inputs_of(contributors), rules = options_.outer, before = state_,
       identity = identity(round_), most = options_.rules.most_tokens] {
        entry->result.emplace(make_step(rules, identity, *before, inputs, most));
      },
      guarded([entry = entry] {
        const std::vector<Computed> waiting = std::move(entry->waiting);
        for (const Computed& done : waiting) done(*entry->result);
      }));
}

}  // namespace neuroshard::rounds
