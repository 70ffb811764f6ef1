// Joins connections that were punched, relayed or taken from TURN with connections of the loopback interface,
// because gRPC dials and accepts plain TCP only. An incoming call is joined with this node's own port; an
// outgoing one with a port for a single use. The bytes are the peers' mutual TLS, so another local program
// that dials such a port gains nothing. The number of connections is bounded.
#pragma once

#include <memory>

#include "core/base/clock.h"
#include "core/nat/splice.h"

namespace neuroshard::nat {

struct PumpLimits {
  std::size_t connections = 64;
  SpliceLimits each{std::uint64_t{1} << 50, std::chrono::minutes(10), std::chrono::hours(24)};
  Duration dial = std::chrono::seconds(5);  // until the loopback side must be connected
};

// Owns no thread: its owner calls step() repeatedly.  Threads: one.
class LoopbackPump {
 public:
  LoopbackPump(const PumpLimits& limits, const Clock& clock) : limits_(limits), clock_(clock) {}

  // An incoming call: joined with `own`, where this node listens. Returns the endpoint from which the call
  // arrives there. Exhausted: too many; the connection is closed.
  Expected<platform::Endpoint> inbound(platform::TcpSocket peer, const platform::Endpoint& own);
  // The same at 127.0.0.1:port.
  Expected<platform::Endpoint> inbound(platform::TcpSocket peer, std::uint16_t port);
  // An outgoing call: the first local program that dials the port on 127.0.0.1 in time is joined with `peer`.
  Expected<std::uint16_t> outbound(platform::TcpSocket peer);

  // Waits at most `limit` for work, and does it; ends early when the descriptor `wake` is readable.
  Expected<void> step(Duration limit, int wake = -1);
  std::size_t connections() const { return waiting_.size() + splices_.size(); }
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Waiting {
    platform::TcpSocket peer;
    platform::TcpSocket dialled;      // inbound
    platform::TcpListener listening;  // outbound
    MonotonicTime deadline;
  };
  Expected<void> has_room() const;
  // True when it is finished: joined, or too late.
  bool advance(Waiting& waiting, const platform::SocketWait& wait, MonotonicTime now);

  PumpLimits limits_;
  const Clock& clock_;
  std::vector<Waiting> waiting_;
  std::vector<Splice> splices_;
  std::uint64_t bytes_ = 0;
};

}  // namespace neuroshard::nat
