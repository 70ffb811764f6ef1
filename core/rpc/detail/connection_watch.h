// Decides which of the accepted connections end before their peers end them. gRPC reads the sockets itself, so what it
// reads is not visible here; but the system counts the bytes of each connection, and the answerer says how many
// belong to calls that it answered. The rest is unearned, and limited: a flood of frames is ended, however it is made.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/net/peer_ranks.h"
#include "core/platform/socket/tls_listener.h"
#include "core/rpc/grpc_transport.h"

namespace neuroshard::rpc::detail {

class ConnectionWatch {
 public:
  explicit ConnectionWatch(const ConnectionLimits& limits) : limits_(limits) {}

  // A call of this connection begins. It counts as unearned bytes until it is answered. False: too many have not
  // been, so this one is to be refused.  Threads: any.
  bool started(const platform::Endpoint& remote, net::PeerRank rank, MonotonicTime now);
  // A call of this connection was answered; its request had so many bytes.  Threads: any.
  void answered(const platform::Endpoint& remote, net::PeerRank rank, std::size_t bytes, MonotonicTime now);
  // A message of a stream arrived.  Threads: any.
  void streamed(const platform::Endpoint& remote, std::size_t bytes, MonotonicTime now);
  // The greeting of a connection, which it makes once; more of them are unearned.  Threads: any.
  void greeted(const platform::Endpoint& remote, net::PeerRank rank, MonotonicTime now);

  // ---- The listener's thread, all below.
  struct End {
    platform::Endpoint remote;
    net::Refusal reason;
  };
  // Those that are to end. open: all that are.
  std::vector<End> review(const std::vector<platform::OpenConnection>& open, MonotonicTime now,
                          bool memory_is_short);
  // One has ended, by whichever side.
  void ended(const platform::OpenConnection& connection, MonotonicTime now);

 private:
  // Bytes above a rate: what has come, less what the rate allows since.
  struct Level {
    double bytes = 0;
    MonotonicTime at{};
    void add(double more, double per_second, MonotonicTime now);
  };
  struct Connection {
    std::uint64_t earned = 0, charged = 0;  // charged: for calls that began
    Level unanswered;                       // calls
    double unearned = 0;                    // of what it has received
    Level own;                              // of a known peer
    net::PeerRank rank = net::PeerRank::Stranger;
    bool greeted = false;
    std::optional<MonotonicTime> answered;
  };
  void account(Connection& connection, const platform::OpenConnection& open, MonotonicTime now);
  bool is_too_old(const Connection& connection, const platform::OpenConnection& open,
                  MonotonicTime now) const;
  bool has_too_much(const Connection& connection, const platform::OpenConnection& open) const;
  void shed(const std::vector<platform::OpenConnection>& open, std::vector<End>& ends) const;
  void forget_levels(MonotonicTime now);

  const ConnectionLimits limits_;
  std::mutex mutex_;
  std::map<platform::Endpoint, Connection> connections_;
  std::unordered_map<std::uint64_t, Level> groups_;  // of strangers
};

}  // namespace neuroshard::rpc::detail
