// A place where nodes of one network find each other without knowing another node: the BitTorrent mainline
// DHT (mainline.h), the local network (local_discovery.h). It gives addresses and nothing more: a node that
// answers there must prove that it belongs to the network, like any other.
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
  virtual std::string_view name() const = 0;  // "the local network", for users
  // Announces that this node is reached at `port` of the address at which it is seen; nothing: no longer.
  // Repeat it periodically.
  virtual void announce(std::optional<std::uint16_t> port) = 0;
  // Searches once. `found` is called any number of times until the next search, with 1 … 64 endpoints each.
  virtual void look_up(Found found) = 0;
};

inline constexpr std::size_t max_found = 64;

}  // namespace neuroshard::rendezvous
