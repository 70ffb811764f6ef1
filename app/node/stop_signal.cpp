#include "app/node/stop_signal.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "app/node/exit_code.h"
#include "core/platform/process/stop_signals.h"

namespace neuroshard::app {

StopSignal::StopSignal() : signals_(platform::stop_signals()) {
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  // A closed reader is an error of the next write (Output::writable), not the end of a training run.
  signal(SIGPIPE, SIG_IGN);
  watcher_ = std::thread([this] { watch(); });
}

StopSignal::~StopSignal() {
  ending_.store(true);
  pthread_kill(watcher_.native_handle(), SIGTERM);
  watcher_.join();
}

void StopSignal::watch() {
  bool interrupted = false;
  while (true) {
    int number = 0;
    if (sigwait(&signals_, &number) != 0) continue;
    if (ending_.load()) return;
    if (number == SIGINT && interrupted) _exit(static_cast<int>(ExitCode::Interrupted));
    interrupted = interrupted || number == SIGINT;
    request();
  }
}

void StopSignal::request() {
  {
    std::lock_guard lock(mutex_);
    source_.cancel();
  }
  requested_.notify_all();
}

bool StopSignal::wait_for(Duration limit) {
  std::unique_lock lock(mutex_);
  return requested_.wait_for(lock, limit, [this] { return source_.token().cancelled(); });
}

}  // namespace neuroshard::app
