// The address groups that limits count by: platform::prefix_group, which is a /24 of IPv4 and a /48 of IPv6.
#pragma once

#include <cstdint>
#include <optional>

#include "core/platform/socket/ip_address.h"

namespace neuroshard::net {

// Nothing: the address is not counted. Addresses that are not of the internet are not, because behind a relay
// all callers have the loopback address, and a household or one LAN is one owner with many computers.
inline std::optional<std::uint64_t> counted_group(const platform::IpAddress& address, bool one_lan) {
  if (one_lan || !platform::globally_routable(address)) return std::nullopt;
  return platform::prefix_group(address);
}

}  // namespace neuroshard::net
