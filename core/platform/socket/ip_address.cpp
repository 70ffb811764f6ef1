#include "core/platform/socket/ip_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "core/platform/socket/subnet.h"

namespace neuroshard::platform {
namespace {

constexpr std::array<std::uint8_t, 12> mapped_prefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

constexpr Subnet v4_block(std::uint8_t a, std::uint8_t b, std::uint8_t c, int bits) {
  return {{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, 0}}, 96 + bits};
}

// IANA special-purpose registries (RFC 6890 and successors), what is not globally reachable.
constexpr std::array reserved = {
    v4_block(0, 0, 0, 8),     v4_block(10, 0, 0, 8),      v4_block(100, 64, 0, 10),
    v4_block(127, 0, 0, 8),   v4_block(169, 254, 0, 16),  v4_block(172, 16, 0, 12),
    v4_block(192, 0, 0, 24),  v4_block(192, 0, 2, 24),    v4_block(192, 168, 0, 16),
    v4_block(198, 18, 0, 15), v4_block(198, 51, 100, 24), v4_block(203, 0, 113, 24),
    v4_block(224, 0, 0, 4),   v4_block(240, 0, 0, 4),
};
constexpr Subnet global_unicast_v6{{{0x20}}, 3};
constexpr Subnet documentation_v6{{{0x20, 0x01, 0x0d, 0xb8}}, 32};

}  // namespace

IpAddress IpAddress::v4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
  IpAddress address;
  std::copy(mapped_prefix.begin(), mapped_prefix.end(), address.bytes.begin());
  address.bytes[12] = a;
  address.bytes[13] = b;
  address.bytes[14] = c;
  address.bytes[15] = d;
  return address;
}

bool IpAddress::is_v4() const {
  return std::equal(mapped_prefix.begin(), mapped_prefix.end(), bytes.begin());
}

Expected<IpAddress> parse_ip(std::string_view text) {
  const std::string copy(text.substr(0, INET6_ADDRSTRLEN));
  in_addr four{};
  if (inet_pton(AF_INET, copy.c_str(), &four) == 1) {
    std::array<std::uint8_t, 4> b{};
    std::memcpy(b.data(), &four, b.size());
    return IpAddress::v4(b[0], b[1], b[2], b[3]);
  }
  IpAddress address;
  if (inet_pton(AF_INET6, copy.c_str(), address.bytes.data()) == 1) return address;
  return make_error(
      ErrorCode::InvalidArgument,
      fmt::format("\"{}\" is not an IP address; write one like 192.0.2.1 or 2001:db8::1", copy));
}

std::string to_text(const IpAddress& address) {
  if (address.is_v4()) {
    const auto& b = address.bytes;
    return fmt::format("{}.{}.{}.{}", b[12], b[13], b[14], b[15]);
  }
  std::array<char, INET6_ADDRSTRLEN> buffer{};
  return inet_ntop(AF_INET6, address.bytes.data(), buffer.data(), buffer.size());
}

bool globally_routable(const IpAddress& address) {
  if (!address.is_v4()) return is_within(address, global_unicast_v6) && !is_within(address, documentation_v6);
  return std::none_of(reserved.begin(), reserved.end(),
                      [&](const Subnet& block) { return is_within(address, block); });
}

std::uint64_t prefix_group(const IpAddress& address) {
  const std::size_t first = address.is_v4() ? 10 : 0;  // the mapped mark keeps the two families apart
  const std::size_t last = address.is_v4() ? 15 : 6;
  std::uint64_t group = 0;
  for (std::size_t i = first; i < last; ++i) group = group << 8 | address.bytes[i];
  return group << 1 | (address.is_v4() ? 1 : 0);
}

Expected<Endpoint> parse_endpoint(std::string_view text) {
  const auto bad = [&] {
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("\"{}\" is not an address with a port; write one like 192.0.2.1:9000 or "
                                  "[2001:db8::1]:9000",
                                  text.substr(0, 64)));
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return bad();
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  const bool bracketed = host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  std::uint16_t port = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (failed != std::errc() || end != digits.data() + digits.size() || port == 0) return bad();
  const auto ip = parse_ip(host);
  if (!ip.ok() || ip->is_v4() == bracketed) return bad();
  return Endpoint{*ip, port};
}

std::string to_text(const Endpoint& endpoint) {
  const std::string ip = to_text(endpoint.ip);
  return endpoint.ip.is_v4() ? fmt::format("{}:{}", ip, endpoint.port)
                             : fmt::format("[{}]:{}", ip, endpoint.port);
}

}  // namespace neuroshard::platform
