#include "core/net/conduct.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/platform/socket/ip_address.h"

namespace neuroshard::net {

std::string_view to_string(Fault fault) {
  switch (fault) {
    case Fault::Malformed: return "messages that can't be read";
    case Fault::BadSignature: return "signatures that do not hold";
    case Fault::OthersRecord: return "records of others";
    case Fault::Flood: return "requests far beyond the limits";
    case Fault::Equivocation: return "equivocation: two signatures that contradict each other";
    case Fault::Oversized: return "messages that are too large";
    case Fault::NotTls: return "connections that are not for peers";
    case Fault::WrongContent: return "files that are not what was asked for";
    case Fault::Count_: break;
  }
  return "unknown";
}

double Conduct::faded(const Score& score, MonotonicTime now) const {
  return score.points * std::exp2(-to_seconds(now - score.at) / to_seconds(rules_.half_life));
}

template <class Scores, class Key>
Conduct::Score& Conduct::score(Scores& scores, const Key& key, MonotonicTime now) {
  if (scores.count(key) == 0 && scores.size() >= rules_.remembered) {
    scores.erase(std::min_element(scores.begin(), scores.end(), [&](const auto& a, const auto& b) {
      return faded(a.second, now) < faded(b.second, now);
    }));
  }
  Score& found = scores[key];
  constexpr double nothing = 1;
  found.points = faded(found, now);
  found.at = now;
  if (found.points < nothing) found.seen = {};
  return found;
}

// Names the most frequent fault.
std::string Conduct::reason_of(const Score& score) {
  const auto most = std::max_element(score.seen.begin(), score.seen.end());
  return fmt::format("{} ({} times)", to_string(static_cast<Fault>(most - score.seen.begin())), *most);
}

void Conduct::count_locked(Score& score, Fault fault) const {
  score.points += rules_.points[static_cast<std::size_t>(fault)];
  ++score.seen[static_cast<std::size_t>(fault)];
}

bool Conduct::fault(const Caller& from, Fault fault) {
  const MonotonicTime now = clock_.monotonic_now();
  const std::lock_guard lock(mutex_);
  ++counts_[static_cast<std::size_t>(fault)];
  Score& node = score(nodes_, from.id, now);
  count_locked(node, fault);
  const bool banned = node.points >= rules_.limit;
  if (banned) {
    bans_.ban_again(from.id, rules_.first_ban, rules_.longest_ban, reason_of(node));
    nodes_.erase(from.id);
  }
  count_prefix_locked(from.endpoint.ip, fault, now);
  return banned;
}

void Conduct::fault(const platform::IpAddress& from, Fault fault) {
  const std::lock_guard lock(mutex_);
  ++counts_[static_cast<std::size_t>(fault)];
  count_prefix_locked(from, fault, clock_.monotonic_now());
}

void Conduct::count_prefix_locked(const platform::IpAddress& from, Fault fault, MonotonicTime now) {
  if (one_lan_ || !platform::globally_routable(from)) return;
  const std::uint64_t group = platform::prefix_group(from);
  Score& prefix = score(prefixes_, group, now);
  count_locked(prefix, fault);
  if (prefix.points < rules_.limit * rules_.prefix_factor) return;
  bans_.ban_prefix(group, rules_.prefix_ban, "too many faults from this address range: " + reason_of(prefix));
  prefixes_.erase(group);
}

double Conduct::points(const NodeId& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(id);
  return found == nodes_.end() ? 0 : faded(found->second, clock_.monotonic_now());
}

std::uint64_t Conduct::faults(Fault fault) const {
  const std::lock_guard lock(mutex_);
  return counts_[static_cast<std::size_t>(fault)];
}

std::size_t Conduct::remembered() const {
  const std::lock_guard lock(mutex_);
  return nodes_.size() + prefixes_.size();
}

}  // namespace neuroshard::net
