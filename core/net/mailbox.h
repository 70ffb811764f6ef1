// Hands tasks from the threads of a library to one executor without losing any. Tasks that the executor has
// no room for wait here; the callers bound their number (open calls). Where the executor lends its turns
// (base/turn.h) and is idle, the calling thread runs the task itself. Kept by shared_ptr: late messages of
// other threads may outlive the listener.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "core/base/executor.h"
#include "core/base/turn.h"

namespace neuroshard::net {

class Mailbox : public std::enable_shared_from_this<Mailbox> {
 public:
  explicit Mailbox(Executor& executor);

  // Runs `task` on the executor, in order; after close() not at all. The task may have run when this returns,
  // but never from within a task of the executor.
  // Threads: any, without a lock that a task may take.
  void put(Executor::Task task);
  // Posts the tasks that the executor had no room for at once. Without this call a timer of the executor posts
  // them a moment later.  Threads: any.
  void retry();
  // No task runs from now on, not even those that wait.  Threads: the executor's, or any after it stopped.
  void close();

 private:
  bool run_here(Executor::Task& task);
  void post_locked();
  void on_timer();
  void drain();

  const std::shared_ptr<Turn> turn_;  // null: the executor lends no turns
  std::mutex mutex_;
  Executor* executor_;  // null once closed
  std::deque<Executor::Task> waiting_;
  bool posted_ = false;
  std::unique_ptr<TimerHandle> timer_;  // while the executor has refused the drain
};

}  // namespace neuroshard::net
