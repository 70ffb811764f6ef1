// gRPC dials and accepts plain TCP only. A connection that was punched, relayed or taken from TURN is
// therefore joined here with a connection of the loopback interface: to this node's own port when somebody
// calls, from a port for one use when this node calls. The bytes are the peers' mutual TLS, so another
// program of this computer that dials such a port gets nowhere; the limits of strangers count here, by
// number.
#pragma once

#include <memory>

#include "core/base/clock.h"
#include "core/nat/splice.h"

namespace neuroshard::nat {

struct PumpLimits {
  std::size_t connections = 64;
  SpliceLimits each{std::uint64_t{1} << 50, std::chrono::minutes(10), std::chrono::hours(24)};
  Duration dial = std::chrono::seconds(5);  // until the loopback side must stand
};

// Owns no thread: its owner calls step() again and again.  Threads: one.
class LoopbackPump {
 public:
  LoopbackPump(const PumpLimits& limits, const Clock& clock) : limits_(limits), clock_(clock) {}

  // Somebody calls: joined with `own`, where this node listens. Exhausted: too many; the connection is
  // closed.
  Expected<void> inbound(platform::TcpSocket peer, const platform::Endpoint& own);
  // The same at 127.0.0.1:port.
  Expected<void> inbound(platform::TcpSocket peer, std::uint16_t port);
  // This node calls: the first who dials the port on 127.0.0.1 in time is joined with `peer`.
  Expected<std::uint16_t> outbound(platform::TcpSocket peer);

  // Waits at most `limit` for something to do, and does it; ends early when the descriptor `wake` can be
  // read.
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
  // True when it is done with: joined, or too late.
  bool advance(Waiting& waiting, const platform::SocketWait& wait, MonotonicTime now);

  PumpLimits limits_;
  const Clock& clock_;
  std::vector<Waiting> waiting_;
  std::vector<Splice> splices_;
  std::uint64_t bytes_ = 0;
};

}  // namespace neuroshard::nat
