#include "core/platform/socket/bounded_listener.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <vector>

#include "core/platform/socket/detail/socket_address.h"

namespace neuroshard::platform {
namespace {

constexpr int backlog = 16;
constexpr int pause_ms = 100;  // when the process has no descriptors left

class Listener final : public BoundedListener {
 public:
  explicit Listener(ConnectionBounds bounds) : bounds_(bounds) {}
  ~Listener() override {
    release_all();
    for (const int descriptor : {socket_, wake_[0], wake_[1]})
      if (descriptor >= 0) close(descriptor);
  }

  Expected<void> listen_now(const Endpoint& at) {
    detail::SocketAddress address = detail::to_socket_address(at);
    socket_ = socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int on = 1, off = 0;
    if (socket_ >= 0 && at.port != 0) setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (socket_ >= 0 && address.storage.ss_family == AF_INET6)
      setsockopt(socket_, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (socket_ < 0 || bind(socket_, address.get(), address.size) != 0 || listen(socket_, backlog) != 0 ||
        getsockname(socket_, address.get(), &address.size) != 0 ||
        pipe2(wake_.data(), O_NONBLOCK | O_CLOEXEC) != 0) {
      return cannot_listen(at, errno);
    }
    endpoint_ = {at.ip, detail::from_socket_address(address).port};
    return {};
  }

  Endpoint endpoint() const override { return endpoint_; }
  std::size_t refused() const override { return refused_.load(); }
  void stop() override {
    const char byte = 0;
    static_cast<void>(!write(wake_[1], &byte, 1));  // full: it wakes all the same
  }

  void serve(const std::function<void(int)>& take) override {
    std::vector<pollfd> polled;
    while (true) {
      polled.assign({{wake_[0], POLLIN, 0}, {socket_, POLLIN, 0}});
      for (const Open& connection : open_) polled.push_back({connection.descriptor, POLLRDHUP, 0});
      const int ready = poll(polled.data(), polled.size(), -1);
      if (ready < 0 && errno == EINTR) continue;
      if (ready < 0 || polled[0].revents != 0) return;
      forget_closed(polled);
      if ((polled[1].revents & POLLIN) != 0) accept_one(take);
    }
  }

 private:
  struct Open {
    int descriptor;       // of ours
    std::uint64_t group;  // of the caller's address
  };

  static Error cannot_listen(const Endpoint& at, int number) {
    ErrorCode code = ErrorCode::Io;
    std::string why = std::strerror(number);
    if (number == EADDRINUSE) {
      code = ErrorCode::Busy;
      why = "another program listens there; choose another port";
    } else if (number == EACCES) {
      code = ErrorCode::Denied;
      why += "; ports from 1024 on require no privileges";
    } else if (number == EADDRNOTAVAIL) {
      code = ErrorCode::InvalidArgument;
      why = "this machine has no such address";
    }
    return make_error(code, fmt::format("can't listen on {}: {}", to_text(at), why));
  }

  void accept_one(const std::function<void(int)>& take) {
    detail::SocketAddress from;
    from.size = sizeof(from.storage);
    const int connection = accept4(socket_, from.get(), &from.size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (connection < 0) {
      // Out of descriptors: the connection waits in the backlog; do not spin meanwhile.
      if (errno == EMFILE || errno == ENFILE) poll(nullptr, 0, pause_ms);
      return;
    }
    // A second descriptor of the same connection tells when it is over, however its owner ends it: shutting
    // it down shows on every descriptor.
    const std::uint64_t group = prefix_group(detail::from_socket_address(from).ip);
    const int watched = has_room(group) ? fcntl(connection, F_DUPFD_CLOEXEC, 0) : -1;
    if (watched < 0) {
      refused_.fetch_add(1);
      close(connection);
      return;
    }
    const int on = 1;
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    open_.push_back({watched, group});
    take(connection);
  }

  bool has_room(std::uint64_t group) const {
    const auto near = std::count_if(open_.begin(), open_.end(),
                                    [group](const Open& connection) { return connection.group == group; });
    return open_.size() < bounds_.all && static_cast<std::size_t>(near) < bounds_.per_group;
  }

  void forget_closed(const std::vector<pollfd>& polled) {
    for (std::size_t i = 2; i < polled.size(); ++i) {
      if (polled[i].revents == 0) continue;
      close(polled[i].fd);
      open_.erase(std::find_if(open_.begin(), open_.end(),
                               [&](const Open& one) { return one.descriptor == polled[i].fd; }));
    }
  }

  void release_all() {
    for (const Open& connection : open_) close(connection.descriptor);
    open_.clear();
  }

  const ConnectionBounds bounds_;
  int socket_ = -1;
  std::array<int, 2> wake_{-1, -1};
  Endpoint endpoint_;
  std::vector<Open> open_;
  std::atomic<std::size_t> refused_{0};
};

}  // namespace

Expected<std::unique_ptr<BoundedListener>> BoundedListener::open(const Endpoint& at,
                                                                 ConnectionBounds bounds) {
  auto listener = std::make_unique<Listener>(bounds);
  NS_RETURN_IF_ERROR(listener->listen_now(at));
  return std::unique_ptr<BoundedListener>(std::move(listener));
}

}  // namespace neuroshard::platform
