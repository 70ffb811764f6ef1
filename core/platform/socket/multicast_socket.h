// Datagrams to everybody in the local network: one IPv4 multicast group on every interface. Never blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/base/bytes.h"
#include "core/platform/socket/ip_address.h"

namespace neuroshard::platform {

// Closes itself.  Threads: one at a time.
class MulticastSocket {
 public:
  // Shares the port with other programs that ask for the same. group: IPv4.  Io.
  static Expected<MulticastSocket> open(const Endpoint& group);
  MulticastSocket(MulticastSocket&& other) noexcept;
  MulticastSocket& operator=(MulticastSocket&&) = delete;
  ~MulticastSocket();

  // Looks at the interfaces anew and joins on those that are up and can multicast; how many there are.
  std::size_t join();
  // One datagram on each interface that was joined, made for the own address there, with a hop limit of 255;
  // lost where it can't be sent. This machine's other programs hear it, too.
  void send(const std::function<Bytes(const IpAddress& own)>& make);

  struct Received {
    std::size_t size = 0;
    Endpoint from;  // of a network that an interface of ours is in
  };
  // Nothing when none is there. Datagrams from outside the local networks are dropped (RFC 6762 §11).
  std::optional<Received> receive(MutableByteSpan target);

 private:
  struct Interface {
    int index = 0;
    std::uint32_t address = 0, mask = 0;  // in the order of the network
  };
  MulticastSocket(int descriptor, const Endpoint& group) : descriptor_(descriptor), group_(group) {}
  int descriptor_ = -1;
  Endpoint group_;
  std::vector<Interface> interfaces_;
  std::vector<int> joined_;
};

}  // namespace neuroshard::platform
