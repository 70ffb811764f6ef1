// An executor without a thread: its tasks run when another thread gives itself to it. The compute thread computes the jobs
// of a pipeline in this way, between jobs of its own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "core/base/executor.h"

namespace neuroshard::engine {

class JobQueue final : public Executor {
 public:
  static constexpr std::size_t capacity = 4096;

  // ---- Executor
  // False: full, or closed.
  bool post(Task task) override;
  // Not for this executor: nobody may be there when the time has come.
  std::unique_ptr<TimerHandle> post_after(Duration delay, Task task) override;
  bool on_thread() const override;

  // ---- The thread that computes.
  // Runs the next task, or waits for one up to `wait`. False: none came.
  bool run_one(Duration wait);
  // Drops what waits, and whatever comes later.
  void close();

 private:
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Task> tasks_;
  bool closed_ = false;
  std::atomic<std::thread::id> runner_{};  // while a task runs
};

}  // namespace neuroshard::engine
