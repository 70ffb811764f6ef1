#include "core/platform/socket/tcp_socket.h"

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "core/platform/process/open_files.h"
#include "core/platform/socket/detail/socket_address.h"

namespace neuroshard::platform {
namespace {

constexpr int listen_backlog = 128;

bool would_wait() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

void send_small_writes_at_once(int descriptor) {
  const int on = 1;
  // Only speed is lost when this fails.
  (void)setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Error closed() {
  return make_error(ErrorCode::Unavailable, "the other side closed the connection");
}

}  // namespace

TcpSocket TcpSocket::adopt(int descriptor) {
  TcpSocket socket;
  socket.descriptor_ = descriptor;
  return socket;
}

Expected<TcpSocket> TcpSocket::dial(const Endpoint& remote, const DialOptions& options) {
  TcpSocket socket;
  NS_ASSIGN_OR_RETURN(socket.descriptor_,
                      detail::open_socket(remote.ip, detail::Transport::Tcp, options.share_port));
  send_small_writes_at_once(socket.descriptor_);
  if (options.local) NS_RETURN_IF_ERROR(detail::bind_socket(socket.descriptor_, *options.local));
  const detail::SocketAddress address = detail::to_socket_address(remote);
  if (::connect(socket.descriptor_, address.get(), address.size) != 0 && errno != EINPROGRESS &&
      errno != EINTR)
    return detail::socket_error(fmt::format("can't connect to {}", to_text(remote)), errno);
  return socket;
}

TcpSocket::~TcpSocket() {
  close();
}

void TcpSocket::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

Expected<Endpoint> TcpSocket::local() const {
  return detail::local_endpoint(descriptor_);
}

Expected<Endpoint> TcpSocket::remote() const {
  detail::SocketAddress address;
  address.size = sizeof address.storage;
  if (getpeername(descriptor_, address.get(), &address.size) != 0)
    return detail::socket_error("reading the address of the other side", errno);
  return detail::from_socket_address(address);
}

Expected<bool> TcpSocket::connected() const {
  int number = 0;
  socklen_t size = sizeof number;
  if (getsockopt(descriptor_, SOL_SOCKET, SO_ERROR, &number, &size) != 0) number = errno;
  if (number != 0) return detail::socket_error("can't connect", number);
  pollfd ready{descriptor_, POLLOUT, 0};
  if (poll(&ready, 1, 0) != 1 || (ready.revents & POLLOUT) == 0) return false;
  return remote().ok();
}

Expected<std::size_t> TcpSocket::read_some(MutableByteSpan target) {
  if (target.empty()) return std::size_t{0};
  const ssize_t count = ::recv(descriptor_, target.data(), target.size(), 0);
  if (count > 0) return static_cast<std::size_t>(count);
  if (count == 0) return closed();
  if (would_wait()) return std::size_t{0};
  return detail::socket_error("reading from a connection", errno);
}

Expected<std::size_t> TcpSocket::write_some(ByteSpan bytes) {
  if (bytes.empty()) return std::size_t{0};
  const ssize_t count = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (count >= 0) return static_cast<std::size_t>(count);
  if (would_wait()) return std::size_t{0};
  return detail::socket_error("writing to a connection", errno);
}

void TcpSocket::shut_down_writing() {
  // A connection that is gone already has nothing to end.
  (void)::shutdown(descriptor_, SHUT_WR);
}

Expected<TcpListener> TcpListener::open(const Endpoint& local, bool share_port) {
  TcpListener listener;
  NS_ASSIGN_OR_RETURN(listener.descriptor_,
                      detail::open_socket(local.ip, detail::Transport::Tcp, share_port));
  const int on = 1;
  (void)setsockopt(listener.descriptor_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  NS_RETURN_IF_ERROR(detail::bind_socket(listener.descriptor_, local));
  if (::listen(listener.descriptor_, listen_backlog) != 0)
    return detail::socket_error(fmt::format("can't listen on {}", to_text(local)), errno);
  return listener;
}

TcpListener::~TcpListener() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Expected<Endpoint> TcpListener::local() const {
  return detail::local_endpoint(descriptor_);
}

Expected<std::optional<TcpListener::Accepted>> TcpListener::accept() {
  detail::SocketAddress from;
  from.size = sizeof from.storage;
  const int descriptor = ::accept4(descriptor_, from.get(), &from.size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (descriptor >= 0) {
    send_small_writes_at_once(descriptor);
    Accepted accepted;
    accepted.socket.descriptor_ = move_high(descriptor);
    accepted.from = detail::from_socket_address(from);
    return std::optional<Accepted>(std::move(accepted));
  }
  // Somebody who gave up before we looked is nobody.
  if (would_wait() || errno == ECONNABORTED) return std::optional<Accepted>();
  if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
    return make_error(ErrorCode::Exhausted, "too many connections are open in this process");
  return detail::socket_error("accepting a connection", errno);
}

}  // namespace neuroshard::platform
