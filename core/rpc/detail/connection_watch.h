// Limits the unearned bytes of accepted connections: those that belong to no call that was answered. A connection from an
// address where nobody is known is *shaped*: its bytes reach gRPC only as far as allow() lets them, so a flood of frames
// stops before gRPC has read it, however it is made. gRPC reads the others itself. The system counts their bytes, and
// review() ends those with too many.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/net/hashed_buckets.h"
#include "core/net/peer_ranks.h"
#include "core/platform/socket/tls_listener.h"
#include "core/platform/socket/traffic_shaper.h"
#include "core/rpc/grpc_transport.h"

namespace neuroshard::rpc::detail {

class ConnectionWatch {
 public:
  // seed: nobody else knows it.
  ConnectionWatch(const ConnectionLimits& limits, std::uint64_t seed);

  // A call of this connection begins. It counts as unearned bytes until it is answered. False: too many have not
  // been, so this one is to be refused.  Threads: any.
  bool started(const platform::Endpoint& remote, net::PeerRank rank, MonotonicTime now);
  // A call of this connection was answered; its request had so many bytes.  Threads: any.
  void answered(const platform::Endpoint& remote, net::PeerRank rank, std::size_t bytes, MonotonicTime now);
  // A message of a stream arrived.  Threads: any.
  void streamed(const platform::Endpoint& remote, std::size_t bytes, MonotonicTime now);
  // The greeting of a connection, which it makes once; more of them are unearned.  Threads: any.
  void greeted(const platform::Endpoint& remote, net::PeerRank rank, MonotonicTime now);

  // ---- Shaped connections.
  // One begins.  Threads: any.
  void shaped(const platform::Endpoint& remote);
  // How many of its bytes may pass; passed: those that have.  Threads: any.
  platform::TrafficShaper::Grant allow(const platform::Endpoint& remote, std::uint64_t passed,
                                       MonotonicTime now);

  // ---- The listener's thread, all below.
  // Whether a TLS handshake with an address where nobody is known may begin now; counts it.
  bool may_greet(const platform::IpAddress& from, MonotonicTime now);
  struct End {
    platform::Endpoint remote;
    net::Refusal reason;
  };
  // Those that are to end. open: all that are.
  std::vector<End> review(const std::vector<platform::OpenConnection>& open, MonotonicTime now,
                          bool memory_is_short);
  // As of the last review(): every connection has had a call answered, none has received more since the review before than
  // heartbeats and votes are, and memory is not short. The next review may be later then.
  bool quiet() const { return quiet_; }
  // One has ended, by whichever side.
  void ended(const platform::OpenConnection& connection, MonotonicTime now);

 private:
  // Bytes above a rate: what has come, less what the rate allows since.
  struct Level {
    double bytes = 0;
    double per_second = 0;  // as of the last add()
    MonotonicTime at{};
    void add(double more, double rate, MonotonicTime now);
  };
  struct Connection {
    std::uint64_t earned = 0, charged = 0;  // charged: for calls that began
    std::uint64_t reviewed = 0;             // bytes that it had received at the last review
    Level unanswered;                       // calls
    double unearned = 0;                    // of what it has received
    Level own;                              // of a known peer
    net::PeerRank rank = net::PeerRank::Stranger;
    bool greeted = false;
    std::optional<std::uint64_t> passed;      // of a shaped one: bytes that passed or may
    std::optional<MonotonicTime> held_since;  // bytes of a shaped one wait, and none may pass
    std::optional<MonotonicTime> answered;
  };
  void account(Connection& connection, const platform::IpAddress& from, std::uint64_t received,
               MonotonicTime now);
  // Bytes that may pass before the connection has too many.
  double room(const Connection& connection, const platform::IpAddress& from) const;
  bool is_too_old(const Connection& connection, const platform::OpenConnection& open,
                  MonotonicTime now) const;
  bool has_too_much(const Connection& connection, const platform::OpenConnection& open,
                    MonotonicTime now) const;
  void shed(const std::vector<platform::OpenConnection>& open, MonotonicTime now, std::vector<End>& ends);
  void forget_levels(MonotonicTime now);

  const ConnectionLimits limits_;
  bool quiet_ = false;
  std::optional<MonotonicTime> known_shed_;
  std::mutex mutex_;
  std::map<platform::Endpoint, Connection> connections_;
  std::unordered_map<std::uint64_t, Level> groups_;  // of strangers
  net::HashedBuckets greetings_;                     // of groups
};

}  // namespace neuroshard::rpc::detail
