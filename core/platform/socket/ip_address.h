// IP addresses and ports as values: IPv6, and IPv4 in its mapped form (RFC 4291 §2.5.5.2), so that one type
// holds both.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/expected.h"

namespace neuroshard::platform {

struct IpAddress {
  std::array<std::uint8_t, 16> bytes{};

  static IpAddress v4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d);
  bool is_v4() const;
  friend auto operator<=>(const IpAddress&, const IpAddress&) = default;
};

// "192.0.2.1" or "2001:db8::1"; no names, no zones. InvalidArgument says what is wrong.
Expected<IpAddress> parse_ip(std::string_view text);
std::string to_text(const IpAddress& address);

// Not reserved for private, link-local, loopback, shared (RFC 6598), documentation or multicast use: what a
// stranger may be dialled at. A record that names another one is an attempt to make us knock on our own
// network's doors.
bool globally_routable(const IpAddress& address);

// The part that one owner usually holds: /24 of IPv4, /48 of IPv6. Equal groups count as one neighbour in
// limits.
std::uint64_t prefix_group(const IpAddress& address);

struct Endpoint {
  IpAddress ip;
  std::uint16_t port = 0;
  friend auto operator<=>(const Endpoint&, const Endpoint&) = default;
};

// "192.0.2.1:9000", "[2001:db8::1]:9000"; port 1 … 65535.
Expected<Endpoint> parse_endpoint(std::string_view text);
std::string to_text(const Endpoint& endpoint);

}  // namespace neuroshard::platform
