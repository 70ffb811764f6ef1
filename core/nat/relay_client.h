// Both ends of a relay (relay_head.h): a callee that waits behind it, and a caller that reaches the callee
// through it. The two nodes use their own mutual TLS over the connections.
#pragma once

#include <optional>

#include "core/nat/io.h"
#include "core/nat/relay_head.h"

namespace neuroshard::nat {

struct RelayedCall {
  platform::TcpSocket socket;
  platform::Endpoint caller;  // by the relay's report: for logs and limits, never for trust
};

// Threads: one.
class RelayCallee {
 public:
  // With the ticket of a reservation. Denied: the relay does not know it; Timeout, Unavailable.
  static Expected<RelayCallee> join(const Io& io, const platform::Endpoint& relay, const RelayTicket& ticket,
                                    MonotonicTime deadline);

  // Waits for a call until `until` and takes it; nothing when none came. Unavailable: the relay is gone; join
  // again, there or at another one.
  Expected<std::optional<RelayedCall>> next(const Io& io, MonotonicTime until);
  // For owners that wait for several things: readable when next() has work.
  int descriptor() const { return control_.descriptor(); }

 private:
  explicit RelayCallee(const platform::Endpoint& relay) : relay_(relay) {}
  Expected<std::optional<RelayedCall>> take(const Io& io, const ControlLine& line);

  platform::Endpoint relay_;
  platform::TcpSocket control_;
  Bytes in_;
  MonotonicTime heard_{}, pings_since_{};
  int pings_ = 0;  // since then
};

// Reaches the node `callee` through the relay. NotFound: it is not there; Busy: it has too many calls,
// or the relay has no data left; Timeout; Unavailable.
Expected<platform::TcpSocket> call_through_relay(const Io& io, const platform::Endpoint& relay,
                                                 const Hash256& callee, MonotonicTime deadline);

}  // namespace neuroshard::nat
