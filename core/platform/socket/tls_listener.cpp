#include "core/platform/socket/tls_listener.h"

#include <fmt/format.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <map>
#include <vector>

#include "core/platform/process/open_files.h"
#include "core/platform/socket/client_hello.h"
#include "core/platform/socket/detail/read_bytes.h"
#include "core/platform/socket/detail/socket_address.h"
#include "core/platform/socket/subnet.h"
#include "core/platform/socket/wake.h"

namespace neuroshard::platform {
namespace {

constexpr int backlog = 64;
constexpr Duration busy_tick = std::chrono::milliseconds(100);
constexpr Duration deaf_time = std::chrono::milliseconds(100);
constexpr Duration longest_wait = std::chrono::seconds(1);
// RFC 8446 §5.1: type 22 (handshake), legacy version 3.x, length of what follows.
constexpr std::size_t record_head = 5;
constexpr std::uint8_t handshake_record = 22;
constexpr std::size_t least_hello = 40;
constexpr std::size_t most_hello = 8u << 10;
// RFC 8446 §6: an alert record with "fatal, protocol_version".
constexpr std::array<std::uint8_t, 7> old_tls_alert{21, 3, 3, 0, 2, 2, 70};

// The least that one line of an Internet provider has: an IPv4 address, a /64 of IPv6.
IpAddress line_of(IpAddress address) {
  constexpr std::size_t prefix_bytes = 8;
  if (!address.is_v4()) std::fill(address.bytes.begin() + prefix_bytes, address.bytes.end(), std::uint8_t{0});
  return address;
}

class Listener final : public TlsListener {
 public:
  Listener(TlsListenerLimits limits, const Clock& clock, Wake wake)
      : limits_(limits), clock_(clock), wake_(std::move(wake)) {}
  ~Listener() override {
    for (const Connection& connection : waiting_) close(connection.descriptor);
    for (const Connection& connection : open_) close(connection.descriptor);
    if (socket_ >= 0) close(socket_);
  }

  Expected<void> listen_now(const Endpoint& at) {
    NS_ASSIGN_OR_RETURN(socket_, detail::open_socket(at.ip, detail::Transport::Tcp, /*share_port=*/false));
    const int on = 1, off = 0;
    const auto allow_reuse = [&] { setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)); };
    if (at.port != 0) allow_reuse();
    if (!at.ip.is_v4()) setsockopt(socket_, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    NS_RETURN_IF_ERROR(detail::bind_socket(socket_, at));
    // A port that the system chose must be one that nobody has. Set now, it is inherited by connections:
    // those that linger after the end don't keep the next start from the same port.
    if (at.port == 0) allow_reuse();
    if (listen(socket_, backlog) != 0)
      return detail::socket_error(fmt::format("can't listen on {}", to_text(at)), errno);
    NS_ASSIGN_OR_RETURN(const Endpoint local, detail::local_endpoint(socket_));
    endpoint_ = {at.ip, local.port};
    return {};
  }

  Endpoint endpoint() const override { return endpoint_; }
  std::size_t open_connections() const override { return count_.load(); }
  std::uint64_t unsent() const override {
    std::uint64_t sum = 0;
    for (const Connection& connection : open_) {
      int bytes = 0;
      if (ioctl(connection.descriptor, SIOCOUTQ, &bytes) == 0 && bytes > 0)
        sum += static_cast<std::uint64_t>(bytes);
    }
    return sum;
  }
  std::vector<OpenConnection> open() const override {
    std::vector<OpenConnection> connections;
    for (const Connection& connection : open_) connections.push_back(view_of(connection));
    return connections;
  }
  void end(const Endpoint& remote) override {
    for (const Connection& connection : open_)
      if (connection.remote == remote) shutdown(connection.descriptor, SHUT_RDWR);
  }
  void stop() override {
    stopping_ = true;
    wake_.set();
  }
  void tick_soon() override { wake_.set(); }

  void serve(const Events& events) override {
    std::vector<pollfd> polled;
    MonotonicTime next_tick = clock_.monotonic_now();
    while (!stopping_) {
      const int listening = clock_.monotonic_now() < deaf_until_ ? -1 : socket_;
      polled.assign({{wake_.descriptor(), POLLIN, 0}, {listening, POLLIN, 0}});
      for (const Connection& c : waiting_) polled.push_back({c.descriptor, POLLIN | POLLRDHUP, 0});
      for (const Connection& c : open_) polled.push_back({c.descriptor, POLLRDHUP, 0});
      const int ready = poll(polled.data(), polled.size(), wait_ms(next_tick));
      if (ready < 0 && errno != EINTR) return;
      const MonotonicTime now = clock_.monotonic_now();
      if (ready > 0) {
        next_tick = std::min(next_tick, now + busy_tick);
        if (polled[0].revents != 0) {
          wake_.clear();
          next_tick = now;
        }
        look_at(polled, events);
      }
      show_out_slow(now, events);
      if (ready > 0 && (polled[1].revents & POLLIN) != 0) accept_some(now, events);
      count_ = waiting_.size() + open_.size();
      if (!stopping_ && now >= next_tick) next_tick = now + events.tick();
    }
  }

 private:
  struct Connection {
    int descriptor = -1;
    Endpoint remote;
    MonotonicTime since{};
    std::size_t wanted = record_head;  // bytes that must be there before it is looked at again
  };
  enum class Look : std::uint8_t { Wait, HandOn, NotTls, OldTls, Plain, Gone };

  // A tick is late by the fraction of a millisecond that poll() cannot wait.
  int wait_ms(MonotonicTime next_tick) const {
    Duration wait = std::clamp(next_tick - clock_.monotonic_now(), Duration::zero(), longest_wait);
    if (!waiting_.empty() || clock_.monotonic_now() < deaf_until_) wait = std::min(wait, busy_tick);
    return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(wait).count());
  }

  // The descriptors of `polled` from 2 on are those of waiting_ and then open_.
  void look_at(const std::vector<pollfd>& polled, const Events& events) {
    const std::size_t waiting = waiting_.size();
    std::vector<Connection> still;
    std::vector<Connection> ready;
    for (std::size_t i = 0; i < waiting; ++i) {
      Connection& connection = waiting_[i];
      const Look look = polled[2 + i].revents == 0 ? Look::Wait : peek(connection, events.plain_begins);
      if (look == Look::Wait) still.push_back(connection);
      if (look == Look::HandOn) ready.push_back(connection);
      if (look == Look::Plain) hand_on_plain(connection, events);
      if (look == Look::NotTls) events.shown_out(ShownOut::NotTls, connection.remote.ip);
      if (look == Look::OldTls) show_out_old(connection, events);
      if (look == Look::NotTls || look == Look::Gone) close(connection.descriptor);
    }
    waiting_ = std::move(still);
    std::size_t place = 2 + waiting;
    std::erase_if(open_, [&](const Connection& connection) {
      if (polled[place++].revents == 0) return false;
      if (events.ended) events.ended(view_of(connection));
      close(connection.descriptor);
      return true;
    });
    for (const Connection& connection : ready) hand_on(connection, events);
  }

  static Look peek(Connection& connection, const std::string& plain_begins) {
    std::array<std::uint8_t, most_hello + record_head> bytes{};
    const ssize_t got = recv(connection.descriptor, bytes.data(), connection.wanted, MSG_PEEK);
    if (got <= 0) return got < 0 && (errno == EAGAIN || errno == EINTR) ? Look::Wait : Look::Gone;
    if (plain_begins.find(static_cast<char>(bytes[0])) != std::string::npos) return Look::Plain;
    if (bytes[0] != handshake_record || (got > 1 && bytes[1] != 3)) return Look::NotTls;
    // Fewer than asked for although the socket waits for all of them: the other side has ended.
    if (static_cast<std::size_t>(got) < connection.wanted) return Look::Gone;
    if (connection.wanted > record_head)
      return offered_tls({bytes.data(), connection.wanted}) == OfferedTls::Older ? Look::OldTls
                                                                                 : Look::HandOn;
    const std::size_t length = static_cast<std::size_t>(bytes[3]) << 8 | bytes[4];
    if (length < least_hello || length > most_hello) return Look::NotTls;
    connection.wanted = record_head + length;
    wait_for(connection);
    return Look::Wait;
  }

  // The kernel wakes us only when so many bytes are there: a slow sender costs nothing.
  static void wait_for(const Connection& connection) {
    const int bytes = static_cast<int>(connection.wanted);
    setsockopt(connection.descriptor, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes));
  }

  static void show_out_old(const Connection& connection, const Events& events) {
    std::array<std::uint8_t, most_hello + record_head> heard{};
    // Unread bytes would turn the close into a reset, and the alert would be lost.
    static_cast<void>(recv(connection.descriptor, heard.data(), connection.wanted, 0));
    static_cast<void>(send(connection.descriptor, old_tls_alert.data(), old_tls_alert.size(), MSG_NOSIGNAL));
    close(connection.descriptor);
    events.shown_out(ShownOut::OldTls, connection.remote.ip);
  }

  static void hand_on_plain(const Connection& connection, const Events& events) {
    const int one = 1;
    setsockopt(connection.descriptor, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof(one));
    setsockopt(connection.descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    events.plain(connection.descriptor);
  }

  void hand_on(const Connection& connection, const Events& events) {
    if (const auto refused =
            events.refuse_greeting ? events.refuse_greeting(connection.remote.ip) : std::nullopt) {
      close(connection.descriptor);
      return events.shown_out(*refused, connection.remote.ip);
    }
    const bool too_many = open_.size() >= limits_.connections;
    const bool address_full = is_full(connection.remote.ip);
    // A second descriptor of the same connection tells when it is over, however its owner ends it.
    const int watched = too_many || address_full ? -1 : duplicate_high(connection.descriptor);
    if (watched < 0) {
      close(connection.descriptor);
      return events.shown_out(address_full ? ShownOut::TooManyOfAddress : ShownOut::TooMany,
                              connection.remote.ip);
    }
    const int one = 1;
    setsockopt(connection.descriptor, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof(one));
    setsockopt(connection.descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    open_.push_back({watched, connection.remote, connection.since, 0});
    events.take(connection.descriptor, connection.remote);
  }

  static OpenConnection view_of(const Connection& connection) {
    return {connection.remote, connection.since, detail::read_bytes(connection.descriptor)};
  }

  // Whether the address of a connection, or its group, has all the connections that it may have.
  bool is_full(const IpAddress& address) const {
    if (limits_.per_address == 0 || (limits_.free_loopback && is_loopback(address))) return false;
    const auto count = [&](const auto& same) {
      return static_cast<std::size_t>(
          std::count_if(open_.begin(), open_.end(), [&](const Connection& c) { return same(c.remote.ip); }));
    };
    if (count([&](const IpAddress& other) { return line_of(other) == line_of(address); }) >=
        limits_.per_address)
      return true;
    return globally_routable(address) && count([&](const IpAddress& other) {
                                           return globally_routable(other) &&
                                                  prefix_group(other) == prefix_group(address);
                                         }) >= limits_.per_group;
  }

  void show_out_slow(MonotonicTime now, const Events& events) {
    std::erase_if(waiting_, [&](const Connection& connection) {
      if (now - connection.since < limits_.patience) return false;
      close(connection.descriptor);
      events.shown_out(ShownOut::TooSlow, connection.remote.ip);
      return true;
    });
  }

  void accept_some(MonotonicTime now, const Events& events) {
    constexpr int at_once = 16;
    for (int i = 0; i < at_once; ++i) {
      detail::SocketAddress remote;
      remote.size = sizeof remote.storage;
      const int descriptor = accept4(socket_, remote.get(), &remote.size, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (descriptor < 0) {
        if (errno != EMFILE && errno != ENFILE) return;
        // Out of descriptors: a waiting connection makes room for one in the backlog, which stays there for a
        // moment, so that this thread does not spin.
        deaf_until_ = now + deaf_time;
        if (!waiting_.empty()) make_room(events);
        return;
      }
      const Endpoint from = detail::from_socket_address(remote);
      const IpAddress& address = from.ip;
      if (events.welcome && !events.welcome(address)) {
        close(descriptor);
        events.shown_out(ShownOut::NotWelcome, address);
        continue;
      }
      if (waiting_.size() >= limits_.waiting) make_room(events);
      waiting_.push_back({move_high(descriptor), from, now, record_head});
      wait_for(waiting_.back());
    }
  }

  void make_room(const Events& events) {
    std::map<IpAddress, std::size_t> counts;
    for (const Connection& connection : waiting_) ++counts[line_of(connection.remote.ip)];
    const auto most = std::max_element(counts.begin(), counts.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    const auto oldest = std::find_if(waiting_.begin(), waiting_.end(), [&](const Connection& c) {
      return line_of(c.remote.ip) == most->first;
    });
    close(oldest->descriptor);
    waiting_.erase(oldest);
    events.shown_out(ShownOut::TooMany, most->first);
  }

  const TlsListenerLimits limits_;
  const Clock& clock_;
  int socket_ = -1;
  const Wake wake_;
  std::atomic<bool> stopping_{false};
  MonotonicTime deaf_until_{};  // no descriptors were left: accepts nothing until then
  Endpoint endpoint_;
  std::vector<Connection> waiting_;  // oldest first
  std::vector<Connection> open_;     // descriptors of ours
  std::atomic<std::size_t> count_{0};
};

}  // namespace

Expected<std::unique_ptr<TlsListener>> TlsListener::open(const Endpoint& at, TlsListenerLimits limits,
                                                         const Clock& clock) {
  NS_ASSIGN_OR_RETURN(Wake wake, Wake::make());
  auto listener = std::make_unique<Listener>(limits, clock, std::move(wake));
  NS_RETURN_IF_ERROR(listener->listen_now(at));
  return std::unique_ptr<TlsListener>(std::move(listener));
}

}  // namespace neuroshard::platform
