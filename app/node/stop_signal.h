// The signals of stop_signals() as a request to stop cleanly. A second SIGINT ends the process at once: the
// newest complete checkpoint is on the disk at any moment, so impatience costs time, never data.
#pragma once

#include <signal.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "core/base/cancel.h"
#include "core/base/clock.h"

namespace neuroshard::app {

// Make one before any other thread exists: it blocks the signals, and new threads inherit that.
class StopSignal {
 public:
  StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;
  ~StopSignal();

  // Cancelled by the first signal. Threads: any.
  CancelToken token() const { return source_.token(); }
  // Requests the stop, as a signal does.
  void request();
  // Waits for the stop, at most `limit`; true when it was requested.
  bool wait_for(Duration limit);

 private:
  void watch();

  const sigset_t signals_;
  CancelSource source_;
  std::mutex mutex_;
  std::condition_variable requested_;
  std::atomic<bool> ending_{false};
  std::thread watcher_;
};

}  // namespace neuroshard::app
