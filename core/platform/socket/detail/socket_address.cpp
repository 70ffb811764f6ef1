#include "core/platform/socket/detail/socket_address.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace neuroshard::platform::detail {
namespace {

ErrorCode code_of(int number) {
  switch (number) {
    case ETIMEDOUT: return ErrorCode::Timeout;
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
    case EADDRNOTAVAIL: return ErrorCode::Unavailable;
    case EADDRINUSE: return ErrorCode::Busy;
    case EACCES:
    case EPERM: return ErrorCode::Denied;
    default: return ErrorCode::Io;
  }
}

}  // namespace

SocketAddress to_socket_address(const Endpoint& endpoint) {
  SocketAddress address;
  if (endpoint.ip.is_v4()) {
    sockaddr_in four{};
    four.sin_family = AF_INET;
    four.sin_port = htons(endpoint.port);
    std::memcpy(&four.sin_addr, endpoint.ip.bytes.data() + 12, 4);
    std::memcpy(&address.storage, &four, sizeof four);
    address.size = sizeof four;
  } else {
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(endpoint.port);
    std::memcpy(&six.sin6_addr, endpoint.ip.bytes.data(), 16);
    std::memcpy(&address.storage, &six, sizeof six);
    address.size = sizeof six;
  }
  return address;
}

Endpoint from_socket_address(const SocketAddress& address) {
  Endpoint endpoint;
  if (address.storage.ss_family == AF_INET) {
    sockaddr_in four{};
    std::memcpy(&four, &address.storage, sizeof four);
    endpoint.ip = IpAddress::v4(0, 0, 0, 0);
    std::memcpy(endpoint.ip.bytes.data() + 12, &four.sin_addr, 4);
    endpoint.port = ntohs(four.sin_port);
  } else if (address.storage.ss_family == AF_INET6) {
    sockaddr_in6 six{};
    std::memcpy(&six, &address.storage, sizeof six);
    std::memcpy(endpoint.ip.bytes.data(), &six.sin6_addr, 16);
    endpoint.port = ntohs(six.sin6_port);
  }
  return endpoint;
}

Expected<int> open_socket(const IpAddress& family, Transport transport, bool share_port) {
  const int type = transport == Transport::Udp ? SOCK_DGRAM : SOCK_STREAM;
  const int descriptor =
      ::socket(family.is_v4() ? AF_INET : AF_INET6, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return socket_error("can't open a socket", errno);
  const int on = 1;
  if (share_port && (setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
                     setsockopt(descriptor, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0)) {
    const Error error = socket_error("can't share a port between sockets", errno);
    ::close(descriptor);
    return error;
  }
  return descriptor;
}

Expected<void> bind_socket(int descriptor, const Endpoint& local) {
  const SocketAddress address = to_socket_address(local);
  if (::bind(descriptor, address.get(), address.size) != 0)
    return socket_error(fmt::format("can't use the address {}", to_text(local)), errno);
  return {};
}

Expected<Endpoint> local_endpoint(int descriptor) {
  SocketAddress address;
  address.size = sizeof address.storage;
  if (getsockname(descriptor, address.get(), &address.size) != 0)
    return socket_error("reading a socket's address", errno);
  return from_socket_address(address);
}

Error socket_error(const std::string& what, int number) {
  return make_error(code_of(number), fmt::format("{}: {}", what, std::strerror(number)));
}

}  // namespace neuroshard::platform::detail
