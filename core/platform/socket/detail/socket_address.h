// Endpoints as the operating system writes them.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include "core/base/error.h"
#include "core/platform/socket/ip_address.h"

namespace neuroshard::platform::detail {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

SocketAddress to_socket_address(const Endpoint& endpoint);
// Of AF_INET or AF_INET6; anything else is an endpoint of zeros.
Endpoint from_socket_address(const SocketAddress& address);

enum class Transport { Udp, Tcp };
// A non-blocking socket that is closed on exec.  share_port: several sockets of this process may use one
// local port, as hole punching needs.  Errors: Io.
Expected<int> open_socket(const IpAddress& family, Transport transport, bool share_port);
Expected<void> bind_socket(int descriptor, const Endpoint& local);
Expected<Endpoint> local_endpoint(int descriptor);

// "what: reason" for errno. Timeout, Unavailable (refused, unreachable, reset), Busy (the port is taken),
// Denied, else Io.
Error socket_error(const std::string& what, int number);

}  // namespace neuroshard::platform::detail
