// Executor: where code runs, injected. Protocols and the engine post to one; tests run them on a manual one,
// with a manual clock, so that hours pass in microseconds.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "core/base/clock.h"

namespace neuroshard {

// Cancels its timer when destroyed. Threads: destroy on the executor's own thread or after the executor
// stopped.
class TimerHandle {
 public:
  virtual ~TimerHandle() = default;
};

class Executor {
 public:
  using Task = std::function<void()>;
  virtual ~Executor() = default;
  // Runs the task later, in posting order. False when the bounded queue is full or the executor is stopping:
  // the task is dropped and the caller decides (a producer slows down, a notification is lost).  Threads:
  // any.
  [[nodiscard]] virtual bool post(Task task) = 0;
  // Runs the task once, `delay` from now.  Threads: any.
  [[nodiscard]] virtual std::unique_ptr<TimerHandle> post_after(Duration delay, Task task) = 0;
  // True on the executor's own thread.
  virtual bool on_thread() const = 0;
};

// One thread of its own, named for debuggers, with a bounded queue.
// Destruction refuses new tasks, drops pending timers, runs what is queued, and joins.
std::unique_ptr<Executor> make_thread_executor(const char* thread_name, std::size_t queue_capacity);

}  // namespace neuroshard
