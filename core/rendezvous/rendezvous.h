// A place where nodes of one network find each other without knowing anybody: the BitTorrent mainline DHT
// (mainline.h), the local network (local_discovery.h). What is found there is an address and nothing more:
// who answers at it has to prove that it belongs to the network, like everybody.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "core/platform/socket/ip_address.h"

namespace neuroshard::rendezvous {

// Threads: one executor's, all members and callbacks; none is called once the object is destroyed.
class Rendezvous {
 public:
  using Found = std::function<void(const std::vector<platform::Endpoint>&)>;
  virtual ~Rendezvous() = default;
  virtual std::string_view name() const = 0;  // "the local network", for people
  // Tells those who look that this node is reached at `port` of the address that it is seen at; nothing: not
  // any more. To be repeated now and then.
  virtual void announce(std::optional<std::uint16_t> port) = 0;
  // Looks once. `found` comes any number of times until the next look, with 1 … 64 endpoints each.
  virtual void look_up(Found found) = 0;
};

inline constexpr std::size_t max_found = 64;

}  // namespace neuroshard::rendezvous
