#include "core/rounds/contributions.h"

#include <algorithm>

#include "core/crypto/hash.h"

namespace neuroshard::rounds {
namespace {

// Work that was done while no quorum was in reach may be that of many rounds; beyond this it is no number.
constexpr std::uint64_t most_rounds_at_once = 1u << 16;

}  // namespace

RoundContributions::RoundContributions(ContributionRules rules, std::uint64_t round, const Hash256& base,
                                       std::vector<RoundMember> members,
                                       std::map<net::NodeId, std::uint64_t> last_sequence,
                                       SignatureChecks* signatures)
    : rules_(rules),
      round_(round),
      base_(base),
      signatures_(signatures),
      members_(std::move(members)),
      last_sequence_(std::move(last_sequence)) {}

Verdict RoundContributions::check(const Contribution& c) const {
  if (c.slot != rules_.slot) return Verdict::OtherSlot;
  if (c.round != round_) return c.round < round_ ? Verdict::PastRound : Verdict::LaterRound;
  const net::NodeId id = crypto::node_id(c.key);
  if (member_index(members_, id) == members_.size()) return Verdict::NotMember;
  if (c.base != base_) return Verdict::StaleBase;
  if (c.codec != rules_.codec.codec) return Verdict::OtherCodec;
  if (c.payload_bytes == 0 || c.payload_bytes > outer::max_payload_bytes(rules_.codec, rules_.values))
    return Verdict::TooLarge;
  if (c.steps < least_steps(rules_.inner_steps)) return Verdict::TooFewSteps;
  if (c.tokens == 0 || c.tokens / most_rounds_at_once > rules_.most_tokens) return Verdict::TooManyTokens;
  const auto last = last_sequence_.find(id);
  if (last != last_sequence_.end() && c.sequence <= last->second) return Verdict::Replayed;
  const bool holds =
      signatures_ != nullptr ? signatures_->holds(c, rules_.network) : contribution_holds(c, rules_.network);
  return holds ? Verdict::Taken : Verdict::BadSignature;
}

Verdict RoundContributions::take(const Contribution& c) {
  const net::NodeId id = crypto::node_id(c.key);
  const auto known = entries_.find(id);
  if (known != entries_.end() && known->second.contribution == c) return Verdict::Known;
  if (excluded(id)) return Verdict::TwoPayloads;
  if (const Verdict verdict = check(c); verdict != Verdict::Taken) return verdict;
  if (known != entries_.end()) {
    excluded_[id] = EvidencePost{known->second.contribution, c};
    return Verdict::TwoPayloads;
  }
  const auto [owner, first] = owners_.emplace(c.payload, id);
  const Payload payload = first ? nullptr : entries_.at(owner->second).payload;
  entries_.emplace(id, Entry{c, payload, !first});
  return first ? Verdict::Taken : Verdict::Copied;
}

bool RoundContributions::keep_named(const Contribution& c) {
  if (owners_.count(c.payload) != 0) return true;
  if (check(c) != Verdict::Taken) return false;
  named_.try_emplace(c.payload, Entry{c, nullptr, false});
  return true;
}

bool RoundContributions::take_payload(Bytes payload) {
  const Hash256 hash = crypto::sha256(payload);
  const auto shared = std::make_shared<const Bytes>(std::move(payload));
  bool wanted = false;
  const auto named = named_.find(hash);
  if (named != named_.end() && named->second.contribution.payload_bytes == shared->size()) {
    named->second.payload = shared;
    wanted = true;
  }
  for (auto& [id, entry] : entries_) {
    if (entry.contribution.payload != hash || entry.contribution.payload_bytes != shared->size()) continue;
    if (!entry.payload) entry.payload = shared;
    wanted = true;
  }
  return wanted;
}

Verdict RoundContributions::take_evidence(const EvidencePost& e) {
  const net::NodeId id = crypto::node_id(e.first.key);
  if (e.first.key != e.second.key || e.first.slot != e.second.slot || e.first.round != e.second.round ||
      e.first == e.second || e.first.slot != rules_.slot)
    return Verdict::Malformed;
  if (e.first.round != round_) return e.first.round < round_ ? Verdict::PastRound : Verdict::LaterRound;
  const auto at = excluded_.find(id);
  if (at != excluded_.end() && at->second) return Verdict::Known;
  if (member_index(members_, id) == members_.size()) return Verdict::NotMember;
  if (!contribution_holds(e.first, rules_.network) || !contribution_holds(e.second, rules_.network))
    return Verdict::BadSignature;
  excluded_[id] = e;
  return Verdict::Taken;
}

const RoundContributions::Entry* RoundContributions::find(const net::NodeId& id) const {
  const auto at = entries_.find(id);
  return at == entries_.end() || excluded(id) ? nullptr : &at->second;
}

const RoundContributions::Entry* RoundContributions::find_payload(const Hash256& payload) const {
  if (const auto owner = owners_.find(payload); owner != owners_.end()) return &entries_.at(owner->second);
  const auto named = named_.find(payload);
  return named == named_.end() ? nullptr : &named->second;
}

bool RoundContributions::usable(const net::NodeId& id) const {
  const Entry* entry = find(id);
  return entry != nullptr && entry->payload != nullptr && !entry->copy;
}

std::size_t RoundContributions::usable_count() const {
  return static_cast<std::size_t>(
      std::count_if(entries_.begin(), entries_.end(), [this](const auto& e) { return usable(e.first); }));
}

std::size_t RoundContributions::announced() const {
  return static_cast<std::size_t>(std::count_if(entries_.begin(), entries_.end(), [this](const auto& e) {
    return !excluded(e.first) && !e.second.copy;
  }));
}

std::size_t RoundContributions::full() const {
  return static_cast<std::size_t>(std::count_if(entries_.begin(), entries_.end(), [this](const auto& e) {
    return !excluded(e.first) && !e.second.copy && e.second.contribution.steps >= rules_.inner_steps;
  }));
}

std::vector<EvidencePost> RoundContributions::evidence() const {
  std::vector<EvidencePost> all;
  for (const auto& [id, evidence] : excluded_)
    if (evidence) all.push_back(*evidence);
  return all;
}

std::map<net::NodeId, std::uint64_t> RoundContributions::sequences() const {
  std::map<net::NodeId, std::uint64_t> all;
  for (const RoundMember& member : members_) {
    const auto last = last_sequence_.find(member.id);
    if (last != last_sequence_.end()) all[member.id] = last->second;
    const auto at = entries_.find(member.id);
    if (at != entries_.end()) all[member.id] = at->second.contribution.sequence;
  }
  return all;
}

}  // namespace neuroshard::rounds
