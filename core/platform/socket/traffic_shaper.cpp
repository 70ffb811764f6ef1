#include "core/platform/socket/traffic_shaper.h"

#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/bytes.h"
#include "core/platform/process/open_files.h"
#include "core/platform/socket/wake.h"

namespace neuroshard::platform {
namespace {

constexpr std::size_t piece_bytes = 64u << 10;  // most that is read at once, and kept for a slow reader
constexpr std::uint64_t wake_key = 0;

class Descriptor {
 public:
  explicit Descriptor(int value = -1) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor() {
    if (value_ >= 0) close(value_);
  }
  int get() const { return value_; }
  int release() { return std::exchange(value_, -1); }

 private:
  int value_;
};

// One direction of a connection.
struct Flow {
  Bytes waiting;  // read, and not yet written
  std::size_t written = 0;
  bool ended = false;  // the sender's end has been read
  bool told = false;   // and passed on
};

// The TCP side is outer, the reader's side inner.
struct Link {
  std::uint64_t id = 0;
  Descriptor outer, inner;
  Endpoint remote;
  std::string name;
  Flow in, out;
  std::uint64_t passed = 0;  // of `in`
  MonotonicTime not_before{};
  std::uint32_t outer_events = 0, inner_events = 0;  // that epoll watches
};

// Writes the waiting bytes. If the reader is gone, it drops them and counts the sender's end as passed on.
void flush(Flow& flow, int to) {
  while (flow.written < flow.waiting.size()) {
    const ssize_t sent =
        send(to, flow.waiting.data() + flow.written, flow.waiting.size() - flow.written, MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (sent < 0) flow.ended = flow.told = true;
    flow.written = sent < 0 ? flow.waiting.size() : flow.written + static_cast<std::size_t>(sent);
  }
  if (!flow.waiting.empty()) Bytes().swap(flow.waiting);  // an idle connection holds no buffer
  flow.written = 0;
  if (flow.ended && !std::exchange(flow.told, true)) shutdown(to, SHUT_WR);
}

// Returns the number of bytes read. Bytes that can't be written at once are kept.
std::size_t move_some(Flow& flow, int from, int to, Span<std::uint8_t> buffer) {
  const ssize_t got = recv(from, buffer.data(), buffer.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  const std::size_t count = got < 0 ? 0 : static_cast<std::size_t>(got);
  if (count == 0) flow.ended = true;
  flow.waiting.assign(buffer.data(), buffer.data() + count);
  flush(flow, to);
  return count;
}

class Shaper final : public TrafficShaper {
 public:
  Shaper(Allow allow, const Clock& clock, Wake wake, int epoll)
      : allow_(std::move(allow)), clock_(clock), wake_(std::move(wake)), epoll_(epoll) {
    epoll_event event{EPOLLIN, {.u64 = wake_key}};
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.descriptor(), &event);
  }

  Expected<int> add(int descriptor, const Endpoint& remote) override {
    Descriptor outer(descriptor);
    std::array<int, 2> pair{-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair.data()) != 0)
      return make_error(ErrorCode::Exhausted, "this process has no descriptors left");
    Descriptor inner(move_high(pair[0])), readers(move_high(pair[1]));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    socklen_t size = sizeof(sa_family_t);  // autobind: unix(7)
    if (bind(inner.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0)
      return make_error(ErrorCode::Exhausted, "the system has no names for sockets left");
    size = sizeof address;
    getsockname(inner.get(), reinterpret_cast<sockaddr*>(&address), &size);
    constexpr std::size_t begin = offsetof(sockaddr_un, sun_path) + 1;

    auto link = std::make_unique<Link>();
    link->outer = std::move(outer);
    link->inner = std::move(inner);
    link->remote = remote;
    link->name.assign(address.sun_path + 1, size > begin ? size - begin : 0);
    const std::lock_guard lock(mutex_);
    link->id = ++last_id_;
    names_[link->name] = remote;
    Link& added = *(links_[link->id] = std::move(link));
    watch(added);
    return readers.release();
  }

  std::optional<Endpoint> remote_of(const std::string& name) const override {
    const std::lock_guard lock(mutex_);
    const auto found = names_.find(name);
    return found == names_.end() ? std::nullopt : std::optional(found->second);
  }

  void end(const Endpoint& remote) override {
    const std::lock_guard lock(mutex_);
    for (auto at = links_.begin(); at != links_.end();) {
      const auto next = std::next(at);
      if (at->second->remote == remote) drop(at);
      at = next;
    }
  }

  std::uint64_t unsent() const override {
    const std::lock_guard lock(mutex_);
    std::uint64_t sum = 0;
    for (const auto& [id, link] : links_) {
      int waiting = 0;
      if (ioctl(link->inner.get(), FIONREAD, &waiting) == 0 && waiting > 0)
        sum += static_cast<std::uint64_t>(waiting);
      sum += link->out.waiting.size() - link->out.written;
    }
    return sum;
  }

  void serve() override {
    constexpr int at_once = 64;
    std::array<epoll_event, at_once> events;
    Duration wait = longest_wait;
    while (!stopping_) {
      const auto ms = std::chrono::ceil<std::chrono::milliseconds>(wait).count();
      const int ready = epoll_wait(epoll_.get(), events.data(), at_once, static_cast<int>(ms));
      if (ready < 0 && errno != EINTR) return;
      const MonotonicTime now = clock_.monotonic_now();
      const std::lock_guard lock(mutex_);
      for (int i = 0; i < ready; ++i) look_at(events[static_cast<std::size_t>(i)], now);
      wait = wake_paused(now);
    }
  }
  void stop() override {
    stopping_ = true;
    wake_.set();
  }

 private:
  static constexpr Duration longest_wait = std::chrono::seconds(10);
  using Links = std::unordered_map<std::uint64_t, std::unique_ptr<Link>>;

  void look_at(const epoll_event& event, MonotonicTime now) {
    if (event.data.u64 == wake_key) return;
    const auto found = links_.find(event.data.u64 >> 1);
    if (found == links_.end()) return;
    Link& link = *found->second;
    const bool inner = (event.data.u64 & 1) != 0;
    const bool broken = !inner && (event.events & (EPOLLERR | EPOLLHUP)) != 0;
    if (!broken) inner ? step_inner(link) : step_outer(link, now);
    // A reader that has closed its end wants nothing more.
    if (broken || link.out.told) return drop(found);
    watch(link);
  }

  void step_inner(Link& link) {
    flush(link.in, link.inner.get());
    if (link.out.waiting.empty()) move_some(link.out, link.inner.get(), link.outer.get(), buffer_);
  }

  // Passes on what may pass of the bytes that have come.
  void step_outer(Link& link, MonotonicTime now) {
    flush(link.out, link.outer.get());
    if (!link.in.waiting.empty() || link.in.ended || now < link.not_before) return;
    const Grant grant = allow_(link.remote, link.passed);
    link.not_before = now + grant.pause;
    if (grant.bytes == 0) return;
    link.passed += move_some(link.in, link.outer.get(), link.inner.get(),
                             Span<std::uint8_t>(buffer_).first(std::min(grant.bytes, buffer_.size())));
  }

  // Those whose pause is over are watched again. Until the next one is due.
  Duration wake_paused(MonotonicTime now) {
    Duration wait = longest_wait;
    for (const auto& [id, link] : links_) {
      if (link->not_before <= now) {
        if ((link->outer_events & EPOLLIN) == 0) watch(*link);
      } else {
        wait = std::min(wait, link->not_before - now);
      }
    }
    return wait;
  }

  void watch(Link& link) {
    const bool paused = link.not_before > clock_.monotonic_now();
    const auto wanted = [](bool read, bool write) {
      return (read ? std::uint32_t{EPOLLIN} : 0) | (write ? std::uint32_t{EPOLLOUT} : 0);
    };
    // EPOLLMSG, which no socket reports: with any event it is watched for its end. Urgent bytes would be reported all
    // through a pause.
    set_events(
        link.outer.get(), link.id << 1, link.outer_events,
        wanted(!paused && link.in.waiting.empty() && !link.in.ended, !link.out.waiting.empty()) | EPOLLMSG);
    // Without events of interest it is not watched at all: a reader that is gone would be reported for ever.
    set_events(link.inner.get(), link.id << 1 | 1, link.inner_events,
               wanted(link.out.waiting.empty() && !link.out.ended, !link.in.waiting.empty()));
  }

  void set_events(int descriptor, std::uint64_t key, std::uint32_t& had, std::uint32_t wanted) {
    if (had == wanted) return;
    epoll_event event{wanted, {.u64 = key}};
    const int what = had == 0 ? EPOLL_CTL_ADD : wanted == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
    epoll_ctl(epoll_.get(), what, descriptor, &event);
    had = wanted;
  }

  void drop(Links::iterator at) {
    // Others may have descriptors of the same connection, so closing alone would not end it.
    shutdown(at->second->outer.get(), SHUT_RDWR);
    names_.erase(at->second->name);
    links_.erase(at);
  }

  const Allow allow_;
  const Clock& clock_;
  const Wake wake_;
  const Descriptor epoll_;
  std::atomic<bool> stopping_{false};
  std::array<std::uint8_t, piece_bytes> buffer_{};
  mutable std::mutex mutex_;
  std::uint64_t last_id_ = 0;  // 0 is none, so a key is never that of the wake
  Links links_;
  std::unordered_map<std::string, Endpoint> names_;
};

}  // namespace

Expected<std::unique_ptr<TrafficShaper>> TrafficShaper::make(Allow allow, const Clock& clock) {
  NS_ASSIGN_OR_RETURN(Wake wake, Wake::make());
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  if (epoll < 0) return make_error(ErrorCode::Exhausted, "this process has no descriptors left");
  return std::unique_ptr<TrafficShaper>(
      std::make_unique<Shaper>(std::move(allow), clock, std::move(wake), epoll));
}

}  // namespace neuroshard::platform
