#include "core/platform/socket/resolve.h"

#include <fmt/format.h>
#include <netdb.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>

#include "core/platform/socket/detail/socket_address.h"

namespace neuroshard::platform {
namespace {

constexpr std::size_t most = 8;
constexpr std::size_t longest_name = 253;  // RFC 1035 §2.3.4

bool is_name(const std::string& host) {
  return !host.empty() && host.size() <= longest_name && std::all_of(host.begin(), host.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
  });
}

struct Place {
  std::string host;
  std::uint16_t port = 0;
};

Expected<Place> parse_place(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  Place place{text.substr(0, colon)};
  const char* const end = text.data() + text.size();
  const bool sound = colon != std::string::npos && is_name(place.host) &&
                     std::from_chars(text.data() + colon + 1, end, place.port).ptr == end && place.port != 0;
  if (sound) return place;
  return make_error(
      ErrorCode::InvalidArgument,
      fmt::format("\"{}\" is not an address; it looks like 192.0.2.1:9000, [2001:db8::1]:9000 or "
                  "host.example.org:9000",
                  text));
}

}  // namespace

Expected<void> check_place(const std::string& text) {
  if (parse_endpoint(text).ok()) return {};
  NS_RETURN_IF_ERROR(parse_place(text));
  return {};
}

Expected<std::vector<Endpoint>> resolve(const std::string& text) {
  if (const auto endpoint = parse_endpoint(text); endpoint.ok()) return std::vector<Endpoint>{*endpoint};
  NS_ASSIGN_OR_RETURN(const Place place, parse_place(text));
  const auto& [host, port] = place;
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (const int failed = getaddrinfo(host.c_str(), nullptr, &wanted, &list); failed != 0) {
    const ErrorCode code = failed == EAI_NONAME ? ErrorCode::NotFound : ErrorCode::Unavailable;
    return make_error(code, fmt::format("the name {} can't be looked up: {}", host, gai_strerror(failed)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, freeaddrinfo);
  std::vector<Endpoint> found;
  for (const addrinfo* at = list; at != nullptr && found.size() < most; at = at->ai_next) {
    if (at->ai_addrlen > sizeof(sockaddr_storage)) continue;
    detail::SocketAddress address;
    address.size = at->ai_addrlen;
    std::memcpy(&address.storage, at->ai_addr, at->ai_addrlen);
    const Endpoint endpoint{detail::from_socket_address(address).ip, port};
    if (std::find(found.begin(), found.end(), endpoint) == found.end()) found.push_back(endpoint);
  }
  if (found.empty()) return make_error(ErrorCode::NotFound, fmt::format("the name {} has no address", host));
  return found;
}

}  // namespace neuroshard::platform
