#include "core/net/conduct.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/platform/ip_address.h"

namespace neuroshard::net {

std::string_view to_string(Fault fault) {
  switch (fault) {
    case Fault::Malformed: return "messages that can't be read";
    case Fault::BadSignature: return "signatures that do not hold";
    case Fault::OthersRecord: return "records of others";
    case Fault::Flood: return "requests far beyond the limits";
    case Fault::TwoPayloads: return "two different contributions to one round";
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

// What weighed most is named.
std::string Conduct::reason_of(const Score& score) {
  const auto most = std::max_element(score.seen.begin(), score.seen.end());
  return fmt::format("{} ({} times)", to_string(static_cast<Fault>(most - score.seen.begin())), *most);
}

bool Conduct::fault(const Caller& from, Fault fault) {
  const auto index = static_cast<std::size_t>(fault);
  const MonotonicTime now = clock_.monotonic_now();
  const std::lock_guard lock(mutex_);
  ++counts_[index];
  const auto count = [&](Score& score) {
    score.points += rules_.points[index];
    ++score.seen[index];
  };
  Score& node = score(nodes_, from.id, now);
  count(node);
  const bool banned = node.points >= rules_.limit;
  if (banned) {
    bans_.ban_again(from.id, rules_.first_ban, rules_.longest_ban, reason_of(node));
    nodes_.erase(from.id);
  }
  if (one_lan_ || !platform::globally_routable(from.endpoint.ip)) return banned;
  const std::uint64_t group = platform::prefix_group(from.endpoint.ip);
  Score& prefix = score(prefixes_, group, now);
  count(prefix);
  if (prefix.points >= rules_.limit * rules_.prefix_factor) {
    bans_.ban_prefix(group, rules_.prefix_ban, "many nodes at this address: " + reason_of(prefix));
    prefixes_.erase(group);
  }
  return banned;
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
