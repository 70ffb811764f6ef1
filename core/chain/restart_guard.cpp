#include "core/chain/restart_guard.h"

#include <algorithm>
#include <limits>

#include "core/crypto/hash.h"

namespace neuroshard::chain {
namespace {

constexpr std::size_t most_asked = 16;
// Votes that an earlier start of this node signed may still be in flight when this one begins.
constexpr Duration messages_arrive = std::chrono::seconds(1);
constexpr std::uint64_t first_boot = 1;  // of a new data directory
constexpr std::uint64_t highest_boot = std::numeric_limits<std::uint64_t>::max() - 1;

}  // namespace

RestartGuard::RestartGuard(Services services, Duration ask_for, std::uint64_t incarnation)
    : services_(std::move(services)),
      self_(crypto::node_id(services_.key.public_key())),
      incarnation_(incarnation),
      watch_(ask_for, services_.rules.block_time) {}

void RestartGuard::begin() {
  const MonotonicTime now = services_.clock.monotonic_now();
  watch_.begin(now);
  answers_from_ = now + messages_arrive;
}

void RestartGuard::on_block(const ChainTip& tip) {
  watch_.on_block(tip.height(), services_.clock.monotonic_now());
  told_.clear();  // they were asked about another height
}

bool RestartGuard::tick(const ChainTip& tip, bool lacks_votes) {
  const bool changed = watch_.tick(tip.height(), tip.registry->round(), services_.clock.monotonic_now());
  const bool asks = lacks_votes || (!watch_.may_vote() && !is_first_start(tip));
  if (asks && services_.clock.monotonic_now() >= answers_from_)
    for (const net::NodeId& id : tip.committee->neighbours(self_, most_asked))
      if (told_.count(id) == 0) services_.ask(id);
  return changed;
}

// Only a key that is no member's has signed nothing. A new data directory with the key of a member: its disk was
// lost.
bool RestartGuard::is_first_start(const ChainTip& tip) const {
  return boot_ == first_boot && tip.registry->find(self_) == nullptr;
}

// More than half: whatever an honest majority holds of this node's signatures is known then.
bool RestartGuard::have_enough_answered(const ChainTip& tip) const {
  const std::vector<net::NodeId> others = tip.committee->neighbours(self_, most_asked);
  const auto answered = std::count_if(others.begin(), others.end(),
                                      [this](const net::NodeId& id) { return told_.count(id) != 0; });
  return is_first_start(tip) || others.empty() || 2 * static_cast<std::size_t>(answered) > others.size();
}

// ---- Heartbeats

Heartbeat RestartGuard::heartbeat(const ChainTip& tip) {
  Heartbeat heartbeat;
  heartbeat.node = services_.key.public_key();
  heartbeat.tip = {tip.height(), tip.block->hash};
  heartbeat.time_ms = static_cast<std::uint64_t>(to_unix_ms(services_.clock.wall_now()));
  heartbeat.boot = boot_;
  heartbeat.incarnation = incarnation_;
  sign_heartbeat(heartbeat, services_.key, services_.rules.network);
  own_ = heartbeat;
  return heartbeat;
}

StatusRequest RestartGuard::request(const ChainTip& tip, bool lacks_votes) {
  if (runs_twice_) return {};
  if (!own_ || own_->boot != boot_) heartbeat(tip);
  return {lacks_votes || !watch_.may_vote(), own_};
}

bool RestartGuard::note(const net::NodeId& member, const Heartbeat& heartbeat, const Registry& registry) {
  if (crypto::node_id(heartbeat.node) != member || registry.find(member) == nullptr) return false;
  if (starts_.size() > registry.members().size())
    std::erase_if(starts_, [&](const auto& entry) { return registry.find(entry.first) == nullptr; });
  const auto [at, first] = starts_.try_emplace(member, Start{heartbeat, heartbeat.incarnation});
  Start& known = at->second;
  if (heartbeat.boot > known.highest.boot) known.highest = heartbeat;
  const bool is_another = std::exchange(known.last, heartbeat.incarnation) != heartbeat.incarnation;
  return is_another || (first && heartbeat.boot > first_boot);
}

const Heartbeat* RestartGuard::newest(const net::NodeId& member) const {
  const auto at = starts_.find(member);
  return at == starts_.end() ? nullptr : &at->second.highest;
}

// ---- What others hold of this node

RestartGuard::Told RestartGuard::on_status(const net::NodeId& from, const ChainStatus& status,
                                           const ChainTip& tip, const Own& own) {
  const bool could_vote = may_vote();
  Told told;
  const std::uint64_t boot = boot_;
  if (status.asker) hear_of_self(*status.asker, tip);
  const MonotonicTime now = services_.clock.monotonic_now();
  if (status.tip == tip.block->hash) {
    told.counts = boot == boot_ && now >= answers_from_;
    if (told.counts) told_.insert(from);
    told.forgotten = forgotten_vote(status.of_asker, tip, own.votes);
    const bool forgot = !watch_.is_quiet(tip.registry->round() + 1) &&
                        forgot_in_round(status.of_asker, tip, own.signed_in_round);
    if (told.forgotten || forgot) is_old(tip);
    if (have_enough_answered(tip)) watch_.on_answers(tip.height(), tip.registry->round(), now);
  }
  if (status.height <= tip.height()) watch_.on_peer(now);
  told.changed = told.forgotten || may_vote() != could_vote;
  return told;
}

void RestartGuard::hear_of_self(const Heartbeat& heartbeat, const ChainTip& tip) {
  const bool is_older = heartbeat.boot < boot_;
  const bool is_own = heartbeat.boot == boot_ && heartbeat.incarnation == incarnation_;
  if (runs_twice_ || is_older || is_own || heartbeat.node != services_.key.public_key() ||
      heartbeat.boot > highest_boot || !heartbeat_holds(heartbeat, services_.rules.network))
    return;
  if (!watch_.may_vote()) {
    boot_ = heartbeat.boot + 1;
    told_.clear();
    services_.keep(boot_);
    return is_old(tip);
  }
  runs_twice_ = true;
  services_.keep(heartbeat.boot);
  services_.logger.error("chain",
                         "another start of this node has its key: a copy runs elsewhere, or its disk was put "
                         "back from a copy. It signs nothing any more: stop the other copy, then restart it");
}

void RestartGuard::is_old(const ChainTip& tip) {
  if (!watch_.forgot(tip.height(), tip.registry->round(), services_.clock.monotonic_now())) return;
  services_.logger.warning("chain",
                           "the disk of this node is older than what it signed last: it waits for the next "
                           "block and the next round before it signs again");
}

std::optional<Vote> RestartGuard::forgotten_vote(const SignedByMember& held, const ChainTip& tip,
                                                 const AgreementMemory& votes) const {
  if (!held.vote) return std::nullopt;
  const Vote& vote = held.vote->vote;
  const bool is_here = vote.height == tip.height() + 1 && vote.previous == tip.block->hash &&
                       (vote.step == VoteStep::Prepare || vote.step == VoteStep::Commit);
  if (!is_here || remembers(votes, vote)) return std::nullopt;
  if (!vote_holds(*held.vote, services_.key.public_key(), services_.rules.network)) return std::nullopt;
  return vote;
}

bool RestartGuard::forgot_in_round(const SignedByMember& held, const ChainTip& tip,
                                   const SignedByMember& own) const {
  const std::uint64_t round = tip.registry->round() + 1;
  const crypto::PublicKey& key = services_.key.public_key();
  const auto& entry = held.contribution;
  const bool knows_entry =
      !entry || (own.contribution && contribution_id(*own.contribution) == contribution_id(*entry));
  if (!knows_entry && entry_holds(*entry, tip.opening, round, key, services_.rules.network)) return true;
  if (!held.vector || (own.vector && own.vector->content == held.vector->content)) return false;
  const MemberRecord* self = tip.registry->find(self_);
  if (self == nullptr) return false;
  const VectorClaim claim{tip.opening, round, self->number, held.vector->content, held.vector->signature};
  return claim_holds(claim, key, services_.rules.network);
}

}  // namespace neuroshard::chain
