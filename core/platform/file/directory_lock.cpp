#include "core/platform/file/directory_lock.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace neuroshard::platform {
namespace {

constexpr std::size_t max_lock_text = 128;
constexpr int look_again_ms = 50;

LockHolder read_holder(int descriptor) {
  std::array<char, max_lock_text + 1> text{};
  LockHolder holder;
  if (pread(descriptor, text.data(), max_lock_text, 0) <= 0) return holder;
  long long pid = 0;
  long long started = 0;
  if (std::sscanf(text.data(), "pid %lld\nstarted %lld\n", &pid, &started) == 2 && pid > 0) {
    holder.pid = pid;
    holder.started = WallTime(std::chrono::milliseconds(started));
  }
  return holder;
}

Error open_failed(const std::string& path, int reason) {
  const ErrorCode code = reason == ENOENT                                         ? ErrorCode::NotFound
                         : reason == EACCES || reason == EPERM || reason == EROFS ? ErrorCode::Denied
                                                                                  : ErrorCode::Io;
  return make_error(code, fmt::format("can't open {}: {}", path, std::strerror(reason)));
}

Error busy(const std::string& directory, const LockHolder& holder) {
  if (holder.pid == 0) {
    return make_error(
        ErrorCode::Busy,
        fmt::format("the data directory {} is in use by another process: stop it or wait", directory));
  }
  const auto seconds = std::chrono::floor<std::chrono::seconds>(holder.started);
  return make_error(
      ErrorCode::Busy,
      fmt::format("the data directory {} is in use by process {} (since {:%Y-%m-%d %H:%M:%S} UTC): "
                  "stop it or wait",
                  directory, holder.pid, fmt::gmtime(std::chrono::system_clock::to_time_t(seconds))));
}

bool try_take(int descriptor) {
  return flock(descriptor, LOCK_EX | LOCK_NB) == 0;
}

// Until somebody closes the file, as whoever has the lock does at the end. The system tells of it a little before the lock is free.
bool take(int descriptor, const std::string& path, const Clock& clock, Duration patience) {
  if (try_take(descriptor)) return true;
  if (errno != EWOULDBLOCK || patience <= Duration::zero()) return false;
  const int closed = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (closed >= 0) static_cast<void>(inotify_add_watch(closed, path.c_str(), IN_CLOSE_WRITE));
  const MonotonicTime end = clock.monotonic_now() + patience;
  bool taken = try_take(descriptor);
  while (!taken && clock.monotonic_now() < end) {
    pollfd event{closed, POLLIN, 0};
    static_cast<void>(poll(&event, 1, look_again_ms));
    std::array<char, 4096> events;
    static_cast<void>(read(closed, events.data(), events.size()));
    taken = try_take(descriptor);
  }
  if (closed >= 0) close(closed);
  if (!taken) errno = EWOULDBLOCK;
  return taken;
}

}  // namespace

Expected<DirectoryLock> DirectoryLock::acquire(const std::string& directory, const Clock& clock,
                                               Duration patience, const std::string& name) {
  const std::string path = directory + "/" + name;
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (descriptor < 0) return open_failed(path, errno);
  DirectoryLock held(descriptor);
  // flock, not fcntl: it belongs to the open file, so closing another descriptor of the same file does not
  // drop it.
  if (!take(descriptor, path, clock, patience)) {
    if (errno == EWOULDBLOCK) return busy(directory, read_holder(descriptor));
    return make_error(ErrorCode::Unsupported,
                      fmt::format("can't lock {} ({}): put the data directory on a local disk", path,
                                  std::strerror(errno)));
  }
  // A full disk must not keep anybody from the lock: the text is a courtesy.
  const std::string text = fmt::format("pid {}\nstarted {}\n", getpid(), to_unix_ms(clock.wall_now()));
  const bool written = ftruncate(descriptor, 0) == 0 && pwrite(descriptor, text.data(), text.size(), 0) > 0;
  static_cast<void>(written);
  return held;
}

DirectoryLock::DirectoryLock(DirectoryLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

DirectoryLock& DirectoryLock::operator=(DirectoryLock&& other) noexcept {
  if (this != &other) {
    if (descriptor_ >= 0) close(descriptor_);
    descriptor_ = std::exchange(other.descriptor_, -1);
  }
  return *this;
}

DirectoryLock::~DirectoryLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

LockHolder read_lock_holder(const std::string& directory) {
  const int descriptor = open((directory + "/lock").c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return {};
  const LockHolder holder = read_holder(descriptor);
  close(descriptor);
  return holder;
}

bool holds_lock(std::int64_t pid, const std::string& directory) {
  const int descriptor = open((directory + "/lock").c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool held = flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  const bool named = read_holder(descriptor).pid == pid;
  close(descriptor);
  return held && named;
}

}  // namespace neuroshard::platform
