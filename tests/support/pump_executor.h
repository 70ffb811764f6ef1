// An executor that runs on the thread of the test, whenever the test waits for something: what other threads
// post, and timers of the real clock.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "core/base/clock.h"
#include "core/base/executor.h"

namespace neuroshard::testing {

class PumpExecutor final : public Executor {
 public:
  bool post(Task task) override {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    wake_.notify_all();
    return true;
  }
  std::unique_ptr<TimerHandle> post_after(Duration delay, Task task) override {
    auto wanted = std::make_shared<bool>(true);
    const std::lock_guard lock(mutex_);
    timers_.emplace(clock_.monotonic_now() + delay, [wanted, task = std::move(task)] {
      if (*wanted) task();
    });
    return std::make_unique<Timer>(std::move(wanted));
  }
  bool on_thread() const override { return true; }

  // Runs what comes until the condition holds; whether it did before the limit.
  bool run_until(const std::function<bool()>& condition, Duration limit = std::chrono::seconds(20)) {
    const MonotonicTime end = clock_.monotonic_now() + limit;
    while (!condition()) {
      if (clock_.monotonic_now() >= end) return false;
      if (Task task = next()) task();
    }
    return true;
  }
  void run_for(Duration length) {
    run_until([] { return false; }, length);
  }

 private:
  class Timer final : public TimerHandle {
   public:
    explicit Timer(std::shared_ptr<bool> wanted) : wanted_(std::move(wanted)) {}
    ~Timer() override { *wanted_ = false; }

   private:
    std::shared_ptr<bool> wanted_;
  };

  Task next() {
    std::unique_lock lock(mutex_);
    const auto due = [this] { return !timers_.empty() && timers_.begin()->first <= clock_.monotonic_now(); };
    if (tasks_.empty() && !due()) wake_.wait_for(lock, std::chrono::milliseconds(5));
    Task task;
    if (due()) {
      task = std::move(timers_.begin()->second);
      timers_.erase(timers_.begin());
    } else if (!tasks_.empty()) {
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    return task;
  }

  SystemClock clock_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> tasks_;
  std::multimap<MonotonicTime, Task> timers_;
};

}  // namespace neuroshard::testing
