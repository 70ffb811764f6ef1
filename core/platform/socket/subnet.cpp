#include "core/platform/socket/subnet.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

namespace neuroshard::platform {
namespace {

constexpr Subnet multicast_v6{{{0xff}}, 8};

// Nothing for other families.
std::optional<IpAddress> address_in(const sockaddr* from) {
  IpAddress address;
  if (from->sa_family == AF_INET6) {
    sockaddr_in6 six{};
    std::memcpy(&six, from, sizeof six);
    std::memcpy(address.bytes.data(), &six.sin6_addr, address.bytes.size());
    return address;
  }
  if (from->sa_family != AF_INET) return std::nullopt;
  sockaddr_in four{};
  std::memcpy(&four, from, sizeof four);
  std::array<std::uint8_t, 4> b{};
  std::memcpy(b.data(), &four.sin_addr, b.size());
  return IpAddress::v4(b[0], b[1], b[2], b[3]);
}

// A mask as an address: its leading ones.
int bits_of(const IpAddress& mask) {
  const std::size_t begin = mask.is_v4() ? 12 : 0;
  int bits = static_cast<int>(8 * begin);
  for (std::size_t i = begin; i < mask.bytes.size(); ++i) {
    bits += std::countl_one(mask.bytes[i]);
    if (mask.bytes[i] != 0xff) break;
  }
  return bits;
}

}  // namespace

bool is_loopback(const IpAddress& address) {
  if (address.is_v4()) return address.bytes[12] == 127;
  IpAddress one;
  one.bytes.back() = 1;
  return address == one;
}

bool is_unicast(const IpAddress& address) {
  if (!address.is_v4()) return address != IpAddress{} && !is_within(address, multicast_v6);
  return address.bytes[12] != 0 && address.bytes[12] < 224;
}

bool is_within(const IpAddress& address, const Subnet& subnet) {
  const auto whole = static_cast<std::size_t>(subnet.bits / 8);
  if (!std::equal(subnet.ip.bytes.begin(), subnet.ip.bytes.begin() + static_cast<std::ptrdiff_t>(whole),
                  address.bytes.begin()))
    return false;
  const int rest = subnet.bits % 8;
  if (rest == 0) return true;
  const auto mask = static_cast<std::uint8_t>(0xff << (8 - rest));
  return (address.bytes[whole] & mask) == (subnet.ip.bytes[whole] & mask);
}

std::vector<Subnet> own_subnets() {
  std::vector<Subnet> found;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return found;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if ((at->ifa_flags & IFF_UP) == 0 || at->ifa_addr == nullptr || at->ifa_netmask == nullptr) continue;
    const auto ip = address_in(at->ifa_addr);
    if (!ip || is_loopback(*ip)) continue;
    const auto mask = address_in(at->ifa_netmask);
    if (!mask) continue;
    found.push_back({*ip, bits_of(*mask)});
  }
  ::freeifaddrs(list);
  return found;
}

}  // namespace neuroshard::platform
