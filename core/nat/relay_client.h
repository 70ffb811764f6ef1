// Both ends of a relay (relay_head.h): a callee that waits behind one, and a caller that reaches it there.
// What is spoken through the connections that come out is the nodes' own mutual TLS.
#pragma once

#include <optional>

#include "core/nat/io.h"
#include "core/nat/relay_head.h"

namespace neuroshard::nat {

struct RelayedCall {
  platform::TcpSocket socket;
  platform::Endpoint caller;  // as the relay says: for logs and limits, never for trust
};

// Threads: one.
class RelayCallee {
 public:
  // With the ticket of a reservation. Denied: the relay does not know it; Timeout, Unavailable.
  static Expected<RelayCallee> join(const Io& io, const platform::Endpoint& relay, const RelayTicket& ticket,
                                    MonotonicTime deadline);

  // Waits for a call until `until` and takes it; nothing when none came. Unavailable: the relay is gone; join
  // again, there or elsewhere.
  Expected<std::optional<RelayedCall>> next(const Io& io, MonotonicTime until);
  // For owners that wait for many things: readable when next() has something to do.
  int descriptor() const { return control_.descriptor(); }

 private:
  explicit RelayCallee(const platform::Endpoint& relay) : relay_(relay) {}
  Expected<std::optional<RelayedCall>> take(const Io& io, const ControlLine& line);

  platform::Endpoint relay_;
  platform::TcpSocket control_;
  Bytes in_;
  MonotonicTime heard_{};
};

// Reaches the node `callee` through the relay. NotFound: it is not there; Busy: it has too many calls;
// Timeout; Unavailable.
Expected<platform::TcpSocket> call_through_relay(const Io& io, const platform::Endpoint& relay,
                                                 const Hash256& callee, MonotonicTime deadline);

}  // namespace neuroshard::nat
