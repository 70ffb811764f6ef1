// An executor that runs what was posted when the test says so. Timers are kept, never fired.  Threads: one.
#pragma once

#include <deque>
#include <memory>
#include <utility>

#include "core/base/executor.h"

namespace neuroshard::testing {

class ManualExecutor final : public Executor {
 public:
  explicit ManualExecutor(std::size_t capacity = 64) : capacity_(capacity) {}
  bool post(Task task) override {
    if (tasks_.size() >= capacity_) return false;
    tasks_.push_back(std::move(task));
    return true;
  }
  std::unique_ptr<TimerHandle> post_after(Duration, Task) override { return std::make_unique<TimerHandle>(); }
  bool on_thread() const override { return true; }

  std::size_t waiting() const { return tasks_.size(); }
  // Runs what is queued now and what that posts; the number of tasks that ran.
  std::size_t run() {
    std::size_t ran = 0;
    for (; !tasks_.empty(); ++ran) {
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      task();
    }
    return ran;
  }

 private:
  std::size_t capacity_;
  std::deque<Task> tasks_;
};

}  // namespace neuroshard::testing
