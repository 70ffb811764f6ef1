#include "core/platform/socket/stream_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace neuroshard::platform {
namespace {

Error failed(const char* what) {
  return make_error(ErrorCode::Io, fmt::format("{}: {}", what, std::strerror(errno)));
}

Error closed() {
  return make_error(ErrorCode::Unavailable, "the other process has closed the connection");
}

bool would_wait() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

}  // namespace

Expected<std::pair<StreamSocket, StreamSocket>> StreamSocket::pair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
    return failed("can't connect two processes");
  std::pair<StreamSocket, StreamSocket> sockets;
  sockets.first.descriptor_ = ends[0];
  sockets.second.descriptor_ = ends[1];
  return sockets;
}

Expected<StreamSocket> StreamSocket::adopt(int descriptor) {
  int type = 0;
  socklen_t size = sizeof type;
  const bool stream = getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
  const int flags = stream ? fcntl(descriptor, F_GETFL) : -1;
  if (flags < 0 || fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) != 0 ||
      fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0) {
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("descriptor {} is not a connection to another process", descriptor));
  }
  StreamSocket socket;
  socket.descriptor_ = descriptor;
  return socket;
}

StreamSocket::~StreamSocket() {
  close();
}

void StreamSocket::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

Expected<std::size_t> StreamSocket::read_some(MutableByteSpan target) {
  if (target.empty()) return std::size_t{0};
  const ssize_t count = recv(descriptor_, target.data(), target.size(), 0);
  if (count > 0) return static_cast<std::size_t>(count);
  if (count == 0 || errno == ECONNRESET) return closed();
  if (would_wait()) return std::size_t{0};
  return failed("reading from another process");
}

Expected<std::size_t> StreamSocket::write_some(ByteSpan bytes) {
  if (bytes.empty()) return std::size_t{0};
  const ssize_t count = send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (count >= 0) return static_cast<std::size_t>(count);
  if (errno == EPIPE || errno == ECONNRESET) return closed();
  if (would_wait()) return std::size_t{0};
  return failed("writing to another process");
}

Expected<bool> wait_for_sockets(std::vector<SocketEvent>& events, Duration limit) {
  std::vector<pollfd> polled;
  for (const SocketEvent& event : events) {
    const auto wanted = static_cast<short>((event.read ? POLLIN : 0) | (event.write ? POLLOUT : 0));
    polled.push_back({event.socket->descriptor(), wanted, 0});
  }
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(limit).count();
  const int ready =
      poll(polled.data(), polled.size(), static_cast<int>(std::clamp<decltype(ms + 0)>(ms, 0, 1'000'000)));
  if (ready < 0 && errno != EINTR) return failed("waiting for another process");
  for (std::size_t i = 0; i < events.size(); ++i) {
    const bool over = ready > 0 && (polled[i].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
    events[i].read = events[i].read && ready > 0 && (over || (polled[i].revents & POLLIN) != 0);
    events[i].write = events[i].write && ready > 0 && (over || (polled[i].revents & POLLOUT) != 0);
  }
  return ready > 0;
}

}  // namespace neuroshard::platform
