#include "core/net/prefix_group.h"

namespace neuroshard::net {

std::uint64_t limit_group(const platform::IpAddress& address) {
  constexpr std::uint64_t own_group = std::uint64_t{1} << 63;  // platform::prefix_group has at most 49 bits
  if (platform::globally_routable(address)) return platform::prefix_group(address);
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const std::uint8_t byte : address.bytes) hash = (hash ^ byte) * 0x100000001b3u;
  return hash | own_group;
}

}  // namespace neuroshard::net
