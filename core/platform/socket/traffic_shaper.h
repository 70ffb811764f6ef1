// Passes the bytes of connections on to a reader that takes all there are, no faster than their owner allows
// (traffic shaping, RFC 2475 §2.3.3.3). Bytes that may not pass yet stay in the kernel: TCP's flow control stops the
// sender. The other direction is passed on as fast as the sender reads. For servers that read their sockets
// themselves and bound too little of what they read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/platform/socket/ip_address.h"

namespace neuroshard::platform {

class TrafficShaper {
 public:
  struct Grant {
    std::size_t bytes = 0;  // that may pass now; 0: none
    Duration pause{};       // before it is asked again
  };
  // Asked when bytes wait. passed: bytes of this connection so far.  Threads: that of serve().
  using Allow = std::function<Grant(const Endpoint& remote, std::uint64_t passed)>;

  // Errors: Exhausted (no descriptors).
  static Expected<std::unique_ptr<TrafficShaper>> make(Allow allow, const Clock& clock);
  virtual ~TrafficShaper() = default;  // closes what it has

  // Takes a non-blocking TCP socket; closed on an error. Returns the reader's end, a non-blocking Unix socket that
  // the caller owns; getpeername() on it gives an abstract name.  Errors: Exhausted.  Threads: any.
  virtual Expected<int> add(int descriptor, const Endpoint& remote) = 0;
  // The sender behind the abstract name, given without its leading zero. Nothing: the connection is over.  Threads: any.
  virtual std::optional<Endpoint> remote_of(const std::string& name) const = 0;
  // Drops a connection with all that waits.  Threads: any.
  virtual void end(const Endpoint& remote) = 0;
  // Bytes from readers that are not in a TCP socket's buffer yet.  Threads: any.
  virtual std::uint64_t unsent() const = 0;

  // Blocks until stop().  Threads: one.
  virtual void serve() = 0;
  virtual void stop() = 0;  // threads: any
};

}  // namespace neuroshard::platform
