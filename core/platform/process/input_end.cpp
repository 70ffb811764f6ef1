#include "core/platform/process/input_end.h"

#include <unistd.h>

#include <array>
#include <cerrno>

#include "core/base/check.h"
#include "core/platform/socket/socket_wait.h"

namespace neuroshard::platform {
namespace {

// False: nothing more will come.
bool read_on(int descriptor) {
  std::array<char, 4096> dropped{};
  const ssize_t got = read(descriptor, dropped.data(), dropped.size());
  return got > 0 || (got < 0 && (errno == EINTR || errno == EAGAIN));
}

}  // namespace

Expected<std::unique_ptr<InputEnd>> InputEnd::watch(int descriptor, std::function<void()> ended,
                                                    Duration patience, std::function<void()> late) {
  std::unique_ptr<InputEnd> watcher(new InputEnd);
  NS_ASSIGN_OR_RETURN(watcher->stop_, StreamSocket::pair());
  watcher->ended_ = std::move(ended);
  watcher->late_ = std::move(late);
  watcher->patience_ = patience;
  watcher->thread_ = make_thread_executor("input-end", 1);
  const bool runs = watcher->thread_->post([self = watcher.get(), descriptor] { self->run(descriptor); });
  NS_CHECK(runs);
  return watcher;
}

InputEnd::~InputEnd() {
  stop_.first.close();
  thread_.reset();
}

void InputEnd::run(int descriptor) {
  std::array<SocketWait, 2> waits;
  while (true) {
    waits[0] = {.descriptor = stop_.second.descriptor(), .read = true};
    waits[1] = {.descriptor = descriptor, .read = true};
    const auto woken = wait_for(waits, std::chrono::hours(1));
    if (waits[0].read) return;
    if (!woken.ok()) break;  // no way to watch any longer: as if it had ended
    if (waits[1].read && !read_on(descriptor)) break;
  }
  ended_();
  waits[0] = {.descriptor = stop_.second.descriptor(), .read = true};
  static_cast<void>(wait_for(Span<SocketWait>(waits.data(), 1), patience_).ok());
  if (!waits[0].read) late_();
}

}  // namespace neuroshard::platform
