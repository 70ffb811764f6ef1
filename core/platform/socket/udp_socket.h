// Datagrams. Never blocks; wait with socket_wait.h.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include "core/base/bytes.h"
#include "core/platform/socket/ip_address.h"

namespace neuroshard::platform {

// Closes itself.  Threads: one at a time.
class UdpSocket {
 public:
  // The family is that of `local`; its port may be 0 (the system chooses) and its address all zeros (any).
  // Busy: the port is taken; Io.
  static Expected<UdpSocket> open(const Endpoint& local);

  UdpSocket() = default;
  UdpSocket(UdpSocket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  UdpSocket& operator=(UdpSocket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~UdpSocket();

  int descriptor() const { return descriptor_; }
  Expected<Endpoint> local() const;

  // Sent, or lost as datagrams are: a full buffer counts as lost. Unavailable: there is no way to that
  // address.
  Expected<void> send_to(ByteSpan bytes, const Endpoint& to);

  struct Received {
    std::size_t size = 0;
    Endpoint from;
  };
  // Nothing when no datagram is there. One that is longer than `target` is cut.
  Expected<std::optional<Received>> receive(MutableByteSpan target);

 private:
  int descriptor_ = -1;
};

// Which of this machine's addresses the system would send from to reach `remote`; nothing is sent.
// Unavailable: there is no way to that address.
Expected<IpAddress> source_address_towards(const Endpoint& remote);

}  // namespace neuroshard::platform
