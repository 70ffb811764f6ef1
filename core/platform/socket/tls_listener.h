// A listening TCP socket for a TLS server that strangers reach. A connection stays in a waiting room until
// its first TLS record (the ClientHello) is there in full, and only then costs the server anything: who sends
// nothing, too slowly, or something else than TLS is shown out here, and who offers no TLS 1.3 with the alert
// that says so. Bounded in all and per address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/platform/socket/ip_address.h"

namespace neuroshard::platform {

struct TlsListenerLimits {
  std::size_t connections = 256;  // handed on and open
  std::size_t per_address = 8;    // of them, of one IPv4 address or IPv6 /64; 0 = no limit, also of groups
  std::size_t per_group = 32;     // of one group of public addresses (prefix_group)
  // Those of the loopback interface are not counted per address: this node's own pump brings relayed and
  // punched ones from there, and bounds them.
  bool free_loopback = false;
  std::size_t waiting = 128;  // in the waiting room; the oldest of the address with most makes room
  Duration patience = std::chrono::seconds(5);  // for the first record
};

// Why a connection was shown out.
enum class ShownOut : std::uint8_t {
  TooMany,
  TooManyOfAddress,
  TooOften,
  TooSlow,
  NotTls,
  OldTls,
  NotWelcome
};

// A connection that was handed on.
struct OpenConnection {
  Endpoint remote;
  MonotonicTime since{};       // when it was accepted
  std::uint64_t received = 0;  // bytes so far that were read from its TCP stream
};

class TlsListener {
 public:
  // Listens at once; the system chooses a port in place of 0. The address "::" takes IPv4 connections too.
  // Errors: Busy (the port is taken), Denied, InvalidArgument (no address of this machine), Io. `clock`
  // outlives the listener.
  static Expected<std::unique_ptr<TlsListener>> open(const Endpoint& at, TlsListenerLimits limits,
                                                     const Clock& clock);
  virtual ~TlsListener() = default;

  virtual Endpoint endpoint() const = 0;  // with the port that was given
  struct Events {
    // A non-blocking socket, owned by the receiver from then on.
    std::function<void(int descriptor, const Endpoint& remote)> take;
    // A connection that begins with one of these bytes is not TLS and goes to `plain`, in the same way; it is
    // the receiver's to bound. Empty: nothing does.
    std::string plain_begins;
    std::function<void(int descriptor)> plain;
    std::function<bool(const IpAddress&)> welcome;  // asked first of all; none: everybody is
    // Asked when the ClientHello is there in full, before it is handed on: why it is shown out, or nothing.
    std::function<std::optional<ShownOut>(const IpAddress&)> refuse_greeting = nullptr;
    std::function<void(ShownOut, const IpAddress&)> shown_out;
    std::function<void(const OpenConnection&)> ended;  // one that was handed on; may be empty
    // Returns the time until the next one. It comes sooner, after a tenth of a second at the latest, when a connection
    // begins or ends, and at once after tick_soon().
    std::function<Duration()> tick;
  };
  // Blocks until stop(). A place is free again when either side has shut the connection down.  Threads: one
  // at a time; the events are called on it.
  virtual void serve(const Events& events) = 0;
  virtual void stop() = 0;       // threads: any
  virtual void tick_soon() = 0;  // threads: any
  // Open connections, handed on and waiting.  Threads: any.
  virtual std::size_t open_connections() const = 0;
  // The connections that were handed on, with their bytes as the system counts them.  Threads: that of serve(),
  // so within its events.
  virtual std::vector<OpenConnection> open() const = 0;
  // Ends one of them, whoever has it. Its owner finds it broken.  Threads: that of serve().
  virtual void end(const Endpoint& remote) = 0;
  // Bytes that were written to connections that were handed on, and that the other sides have not got yet.
  // Threads: that of serve(), so within its events.
  virtual std::uint64_t unsent() const = 0;
};

}  // namespace neuroshard::platform
