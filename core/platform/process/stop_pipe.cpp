#include "core/platform/process/stop_pipe.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>

#include "core/platform/process/stop_signals.h"

namespace neuroshard::platform {
namespace {

constexpr std::array<int, 3> stop_numbers{SIGINT, SIGTERM, SIGHUP};

// The only state that a signal handler may touch: the pipe's write end; -1 = none installed.
std::atomic<int> write_end{-1};
static_assert(std::atomic<int>::is_always_lock_free);
std::array<struct sigaction, stop_numbers.size()> former{};

void on_signal(int) {
  const int saved = errno;
  const char byte = 's';
  const auto written = write(write_end.load(), &byte, 1);  // a full pipe says the same already
  static_cast<void>(written);
  errno = saved;
}

}  // namespace

Expected<StopPipe> StopPipe::install() {
  if (write_end.load() >= 0) return make_error(ErrorCode::Busy, "this program already catches stop signals");
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0)
    return make_error(ErrorCode::Io, std::string("can't create a pipe for signals: ") + std::strerror(errno));
  write_end.store(ends[1]);
  const sigset_t caught = stop_signals();
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < stop_numbers.size(); ++i)
    sigaction(stop_numbers[i], sigismember(&caught, stop_numbers[i]) == 1 ? &action : nullptr, &former[i]);
  return StopPipe(ends[0]);
}

StopPipe::StopPipe(StopPipe&& other) noexcept : read_end_(other.read_end_) {
  other.read_end_ = -1;
}

StopPipe::~StopPipe() {
  if (read_end_ < 0) return;
  for (std::size_t i = 0; i < stop_numbers.size(); ++i) sigaction(stop_numbers[i], &former[i], nullptr);
  close(write_end.exchange(-1));
  close(read_end_);
}

}  // namespace neuroshard::platform
