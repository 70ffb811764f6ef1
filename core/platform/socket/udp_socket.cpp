#include "core/platform/socket/udp_socket.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "core/platform/socket/detail/socket_address.h"

namespace neuroshard::platform {

Expected<UdpSocket> UdpSocket::open(const Endpoint& local) {
  UdpSocket socket;
  NS_ASSIGN_OR_RETURN(socket.descriptor_, detail::open_socket(local.ip, detail::Transport::Udp, false));
  NS_RETURN_IF_ERROR(detail::bind_socket(socket.descriptor_, local));
  return socket;
}

UdpSocket::~UdpSocket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Expected<Endpoint> UdpSocket::local() const {
  return detail::local_endpoint(descriptor_);
}

Expected<void> UdpSocket::send_to(ByteSpan bytes, const Endpoint& to) {
  const detail::SocketAddress address = detail::to_socket_address(to);
  if (::sendto(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL, address.get(), address.size) >= 0)
    return {};
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ENOBUFS) return {};
  return detail::socket_error(fmt::format("can't send to {}", to_text(to)), errno);
}

Expected<std::optional<UdpSocket::Received>> UdpSocket::receive(MutableByteSpan target) {
  detail::SocketAddress from;
  from.size = sizeof from.storage;
  const ssize_t size = ::recvfrom(descriptor_, target.data(), target.size(), 0, from.get(), &from.size);
  if (size >= 0) {
    return std::optional<Received>(
        Received{static_cast<std::size_t>(size), detail::from_socket_address(from)});
  }
  // A refusal is about an earlier datagram, and anybody can forge one: the caller's deadline decides.
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ECONNREFUSED)
    return std::optional<Received>();
  return detail::socket_error("receiving a datagram", errno);
}

Expected<IpAddress> source_address_towards(const Endpoint& remote) {
  NS_ASSIGN_OR_RETURN(const int descriptor, detail::open_socket(remote.ip, detail::Transport::Udp, false));
  const detail::SocketAddress address = detail::to_socket_address(remote);
  const bool found = ::connect(descriptor, address.get(), address.size) == 0;
  const int number = errno;
  auto local = detail::local_endpoint(descriptor);
  ::close(descriptor);
  if (!found) return detail::socket_error(fmt::format("no route to {}", to_text(remote)), number);
  if (!local.ok()) return std::move(local).error();
  return local->ip;
}

}  // namespace neuroshard::platform
