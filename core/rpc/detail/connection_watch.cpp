#include "core/rpc/detail/connection_watch.h"

#include <algorithm>
#include <utility>

#include "core/net/address_group.h"

namespace neuroshard::rpc::detail {
namespace {

// The bytes of a call on the line beside its body: headers, their TLS records, the frames that acknowledge the answer.
constexpr std::uint64_t call_overhead = 2048;
// The charge for a call that is given up: a cancelled call takes about as much memory for a moment.
constexpr std::uint64_t call_charge = 4u << 10;
constexpr std::uint64_t handshake_and_greeting = 8u << 10;
constexpr std::uint64_t tls_and_frames_divisor = 64;  // of a body
constexpr std::uint64_t message_frames = 64;          // of a message of a stream
// Calls are shorter than what they earn; so much of the rest is kept.
constexpr std::uint64_t most_in_advance = 64u << 10;
// Bytes of strangers pass in small pieces with pauses between them, so that their calls are charged before more passes.
// A piece can begin 17 calls, for which gRPC takes 25 KiB each.
constexpr double stranger_piece = 1u << 10, known_piece = 64u << 10;
constexpr double least_piece = 1u << 10;  // no fewer, so that a trickle costs no time
constexpr Duration between_pieces = std::chrono::milliseconds(10);
constexpr std::size_t greeting_buckets = 2048;
// Longer for those that are held for long: a flood of many connections would wake the shaper all the time.
constexpr Duration while_held = std::chrono::milliseconds(250), longest_while_held = std::chrono::seconds(1);
// Those who are known are shed less often, so that the memory of the last ones is free before more go.
constexpr Duration between_known_shed = std::chrono::seconds(2);
// Heartbeats and votes are some kilobytes a second.
constexpr std::uint64_t idle_bytes = 64u << 10;

}  // namespace

void ConnectionWatch::Level::add(double more, double rate, MonotonicTime now) {
  bytes = std::max(0.0, bytes - rate * std::max(0.0, to_seconds(now - at))) + more;
  bytes = std::max(0.0, bytes);
  per_second = rate;
  at = now;
}

ConnectionWatch::ConnectionWatch(const ConnectionLimits& limits, std::uint64_t seed)
    : limits_(limits),
      greetings_(greeting_buckets,
                 net::TokenBucket(limits.greetings_per_second, limits.greetings_burst, MonotonicTime{}),
                 seed) {}

bool ConnectionWatch::may_greet(const platform::IpAddress& from, MonotonicTime now) {
  const auto group = net::counted_group(from, /*one_lan=*/limits_.greetings_burst == 0);
  const std::lock_guard lock(mutex_);
  return !group || greetings_.of(*group).try_take(1, now);
}

bool ConnectionWatch::started(const platform::Endpoint& remote, net::PeerRank rank, MonotonicTime now) {
  const std::lock_guard lock(mutex_);
  Connection& connection = connections_[remote];
  connection.rank = rank;
  connection.charged += call_charge;
  connection.unanswered.add(1, limits_.given_up_per_second, now);
  return connection.unanswered.bytes <= limits_.given_up_burst;
}

void ConnectionWatch::answered(const platform::Endpoint& remote, net::PeerRank rank, std::size_t bytes,
                               MonotonicTime now) {
  const std::lock_guard lock(mutex_);
  Connection& connection = connections_[remote];
  connection.rank = rank;
  connection.earned += bytes + bytes / tls_and_frames_divisor + call_overhead + call_charge;
  connection.unanswered.add(-1, limits_.given_up_per_second, now);
  connection.answered = now;
}

void ConnectionWatch::streamed(const platform::Endpoint& remote, std::size_t bytes, MonotonicTime now) {
  const std::lock_guard lock(mutex_);
  Connection& connection = connections_[remote];
  connection.earned += bytes + bytes / tls_and_frames_divisor + message_frames;
  connection.answered = now;
}

void ConnectionWatch::greeted(const platform::Endpoint& remote, net::PeerRank rank, MonotonicTime now) {
  const std::lock_guard lock(mutex_);
  Connection& connection = connections_[remote];
  connection.rank = rank;
  if (std::exchange(connection.greeted, true)) return;
  connection.earned += handshake_and_greeting + call_charge;
  connection.unanswered.add(-1, limits_.given_up_per_second, now);
  connection.answered = now;
}

void ConnectionWatch::shaped(const platform::Endpoint& remote) {
  const std::lock_guard lock(mutex_);
  connections_[remote] = Connection();
  connections_[remote].passed = 0;
}

platform::TrafficShaper::Grant ConnectionWatch::allow(const platform::Endpoint& remote, std::uint64_t passed,
                                                      MonotonicTime now) {
  const std::lock_guard lock(mutex_);
  const auto found = connections_.find(remote);
  if (found == connections_.end()) return {0, limits_.first_call};  // it has just ended
  Connection& connection = found->second;
  account(connection, remote.ip, passed, now);
  const bool stranger = connection.rank == net::PeerRank::Stranger;
  const double bytes = std::min(room(connection, remote.ip), stranger ? stranger_piece : known_piece);
  if (bytes < least_piece) {
    if (!connection.held_since) connection.held_since = now;
    return {0, std::clamp(Duration(now - *connection.held_since), while_held, longest_while_held)};
  }
  connection.held_since.reset();
  account(connection, remote.ip, passed + static_cast<std::uint64_t>(bytes), now);
  return {static_cast<std::size_t>(bytes), stranger ? between_pieces : Duration{}};
}

double ConnectionWatch::room(const Connection& connection, const platform::IpAddress& from) const {
  if (connection.rank != net::PeerRank::Stranger)
    return limits_.unearned_burst * limits_.known_factor - connection.own.bytes;
  const auto group = groups_.find(net::limit_group(from));
  const double level = group == groups_.end() ? 0 : group->second.bytes;
  const double most = connection.passed ? limits_.shaped_burst : limits_.unearned_burst;
  const double spared = connection.passed ? limits_.shaped_spared : limits_.spared;
  return std::max(most - level, spared - connection.unearned);
}

void ConnectionWatch::account(Connection& connection, const platform::IpAddress& from, std::uint64_t received,
                              MonotonicTime now) {
  if (connection.passed) connection.passed = received;
  const std::uint64_t spent = received + connection.charged;
  connection.earned = std::min(connection.earned, spent + most_in_advance);
  const double unearned = spent > connection.earned ? static_cast<double>(spent - connection.earned) : 0;
  // Negative when a request that was unearned while it arrived has been answered.
  const double more = unearned - connection.unearned;
  connection.unearned = unearned;
  if (connection.rank == net::PeerRank::Stranger)
    groups_[net::limit_group(from)].add(
        more, connection.passed ? limits_.shaped_per_second : limits_.unearned_per_second, now);
  else
    connection.own.add(more, limits_.unearned_per_second * limits_.known_factor, now);
}

bool ConnectionWatch::is_too_old(const Connection& connection, const platform::OpenConnection& open,
                                 MonotonicTime now) const {
  if (!connection.answered) return now - open.since > limits_.first_call;
  return connection.rank == net::PeerRank::Stranger && now - *connection.answered > limits_.next_call;
}

bool ConnectionWatch::has_too_much(const Connection& connection, const platform::OpenConnection& open,
                                   MonotonicTime now) const {
  if (connection.passed) return connection.held_since && now - *connection.held_since > limits_.held;
  return room(connection, open.remote.ip) < 0;
}

std::vector<ConnectionWatch::End> ConnectionWatch::review(const std::vector<platform::OpenConnection>& open,
                                                          MonotonicTime now, bool memory_is_short) {
  const std::lock_guard lock(mutex_);
  std::map<platform::Endpoint, Connection> kept;  // without those that ended before their last call did
  for (const platform::OpenConnection& one : open) {
    Connection& connection = kept[one.remote];
    if (const auto known = connections_.find(one.remote); known != connections_.end())
      connection = known->second;
    account(connection, one.remote.ip, connection.passed.value_or(one.received), now);
  }
  connections_ = std::move(kept);
  quiet_ = !memory_is_short;
  std::vector<End> ends;
  for (const platform::OpenConnection& one : open) {
    Connection& connection = connections_[one.remote];
    const bool moved = one.received > std::exchange(connection.reviewed, one.received) + idle_bytes;
    if (moved || !connection.answered) quiet_ = false;
    if (has_too_much(connection, one, now))
      ends.push_back({one.remote, net::Refusal::Unearned});
    else if (is_too_old(connection, one, now))
      ends.push_back({one.remote, net::Refusal::NoCalls});
  }
  if (memory_is_short) shed(open, now, ends);
  forget_levels(now);
  return ends;
}

// A quarter of those with the lowest rank, of these first those with the most unearned bytes. The memory of strangers may
// fill again within a moment, so a flood of theirs is ended at each look.
void ConnectionWatch::shed(const std::vector<platform::OpenConnection>& open, MonotonicTime now,
                           std::vector<End>& ends) {
  std::vector<std::pair<const Connection*, platform::Endpoint>> lowest;
  for (const platform::OpenConnection& one : open) {
    const Connection& connection = connections_.at(one.remote);
    if (!lowest.empty() && connection.rank > lowest.front().first->rank) continue;
    if (!lowest.empty() && connection.rank < lowest.front().first->rank) lowest.clear();
    lowest.emplace_back(&connection, one.remote);
  }
  if (lowest.empty()) return;
  if (lowest.front().first->rank != net::PeerRank::Stranger) {
    if (known_shed_ && now - *known_shed_ < between_known_shed) return;
    known_shed_ = now;
  }
  std::sort(lowest.begin(), lowest.end(),
            [](const auto& a, const auto& b) { return a.first->unearned > b.first->unearned; });
  constexpr std::size_t parts = 4;
  lowest.resize((lowest.size() + parts - 1) / parts);
  for (const auto& [connection, remote] : lowest) ends.push_back({remote, net::Refusal::MemoryShort});
}

void ConnectionWatch::ended(const platform::OpenConnection& connection, MonotonicTime now) {
  const std::lock_guard lock(mutex_);
  const auto found = connections_.find(connection.remote);
  if (found == connections_.end()) return;
  account(found->second, connection.remote.ip, found->second.passed.value_or(connection.received), now);
  connections_.erase(found);
}

void ConnectionWatch::forget_levels(MonotonicTime now) {
  for (auto& [group, level] : groups_) level.add(0, level.per_second, now);
  std::erase_if(groups_, [](const auto& group) { return group.second.bytes == 0; });
}

}  // namespace neuroshard::rpc::detail
