#include "core/net/conduct.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/platform/socket/ip_address.h"

namespace neuroshard::net {
namespace {

// The part of an address that one customer holds: IPv4 in full, /64 of IPv6.
platform::IpAddress host_of(platform::IpAddress address) {
  if (!address.is_v4()) std::fill(address.bytes.begin() + 8, address.bytes.end(), std::uint8_t{0});
  return address;
}

}  // namespace

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
  count_address_locked(from.endpoint.ip, fault, now);
  return banned;
}

void Conduct::fault(const platform::IpAddress& from, Fault fault) {
  const std::lock_guard lock(mutex_);
  ++counts_[static_cast<std::size_t>(fault)];
  count_address_locked(from, fault, clock_.monotonic_now());
}

bool Conduct::counts(const platform::IpAddress& from) const {
  return !one_lan_ && (!rules_.internet_only || platform::globally_routable(from));
}

// Twice the limit at most: half a lifetime of points after the last fault, the address is as good as any.
void Conduct::count_address_locked(const platform::IpAddress& from, Fault fault, MonotonicTime now) {
  if (!counts(from)) return;
  const auto count_within = [&](Score& score, double limit) {
    count_locked(score, fault);
    score.points = std::min(score.points, 2 * limit);
  };
  count_within(score(addresses_, host_of(from), now), rules_.limit * rules_.address_factor);
  count_within(score(groups_, platform::prefix_group(from), now), rules_.limit * rules_.group_factor);
}

const Conduct::Score* Conduct::closed_locked(const platform::IpAddress& from, MonotonicTime now) const {
  const auto found = counts(from) ? addresses_.find(host_of(from)) : addresses_.end();
  if (found == addresses_.end() || faded(found->second, now) < rules_.limit * rules_.address_factor)
    return nullptr;
  return &found->second;
}

Conduct::Score* Conduct::slow_locked(const platform::IpAddress& from, MonotonicTime now) {
  const auto found = counts(from) ? groups_.find(platform::prefix_group(from)) : groups_.end();
  if (found == groups_.end() || faded(found->second, now) < rules_.limit * rules_.group_factor)
    return nullptr;
  return &found->second;
}

void Conduct::add_address_locked(const NodeId& id, const platform::IpAddress& host) {
  known_addresses_.insert(host);
  if (is_ranked(id)) ranked_addresses_.insert(host);
}

void Conduct::set_known(const std::vector<KnownNode>& nodes) {
  const std::lock_guard lock(mutex_);
  known_.clear();
  known_addresses_.clear();
  ranked_addresses_.clear();
  for (const KnownNode& node : nodes) {
    known_.insert(node.id);
    for (const platform::IpAddress& address : node.addresses) add_address_locked(node.id, host_of(address));
  }
  std::erase_if(called_from_, [this](const auto& entry) {
    return known_.count(entry.first) == 0 && !is_ranked(entry.first);
  });
  for (const auto& [id, host] : called_from_) add_address_locked(id, host);
}

bool Conduct::has_ranked(const platform::IpAddress& address) const {
  const std::lock_guard lock(mutex_);
  return ranked_addresses_.count(host_of(address)) != 0;
}

bool Conduct::welcome(const platform::IpAddress& from) const {
  const std::lock_guard lock(mutex_);
  return closed_locked(from, clock_.monotonic_now()) == nullptr || known_addresses_.count(host_of(from)) != 0;
}

bool Conduct::may_greet(const platform::IpAddress& from) {
  const MonotonicTime now = clock_.monotonic_now();
  const std::lock_guard lock(mutex_);
  const bool closed = closed_locked(from, now) != nullptr;
  Score* const slow = slow_locked(from, now);
  if (!closed && (slow == nullptr || known_addresses_.count(host_of(from)) != 0)) return true;
  // A known node shares the address with the culprit, and only the handshake tells them apart.
  Score& score = closed ? addresses_[host_of(from)] : *slow;
  if (!score.pace) score.pace.emplace(rules_.slow_per_second, rules_.slow_burst, now);
  return score.pace->try_take(1, now);
}

Expected<void> Conduct::check(const Caller& from) {
  const std::lock_guard lock(mutex_);
  if (known_.count(from.id) != 0 || is_ranked(from.id)) {
    if (counts(from.endpoint.ip)) {
      called_from_[from.id] = host_of(from.endpoint.ip);
      add_address_locked(from.id, host_of(from.endpoint.ip));
    }
    return {};
  }
  const Score* const closed = closed_locked(from.endpoint.ip, clock_.monotonic_now());
  if (closed == nullptr) return {};
  return make_error(ErrorCode::Denied, "too many faults from this address: " + reason_of(*closed));
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
  return nodes_.size() + addresses_.size() + groups_.size();
}

}  // namespace neuroshard::net
