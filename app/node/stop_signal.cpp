#include "app/node/stop_signal.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "app/node/exit_code.h"

namespace neuroshard::app {
namespace {

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGHUP);
  return set;
}

}  // namespace

StopSignal::StopSignal() {
  const sigset_t set = stop_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
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
  const sigset_t set = stop_signals();
  bool interrupted = false;
  while (true) {
    int number = 0;
    if (sigwait(&set, &number) != 0) continue;
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
