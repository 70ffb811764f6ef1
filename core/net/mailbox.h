// From threads of a library to one executor, without losing anything: what the executor has no room for waits
// here. Whoever puts bounds how much that can be (calls under way). Where the executor lends its turns
// (base/turn.h) and has nothing to do, whoever puts runs the task itself. Kept by shared_ptr: late messages
// of other threads may outlive who listens.
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

  // Runs `task` on the executor, in order; not at all after close(). It may have run when this returns, but
  // never from within a task of the executor.
  // Threads: any; not with a lock that a task may want.
  void put(Executor::Task task);
  // Posts at once what the executor had no room for. Without the call a timer of the executor's does so a
  // moment later.  Threads: any.
  void retry();
  // From now on nothing runs, not even what waits.  Threads: the executor's, or after it stopped.
  void close();

 private:
  bool run_here(Executor::Task& task);
  void post_locked();
  void on_timer();
  void drain();

  const std::shared_ptr<Turn> turn_;  // null: it lends none
  std::mutex mutex_;
  Executor* executor_;  // null once closed
  std::deque<Executor::Task> waiting_;
  bool posted_ = false;
  std::unique_ptr<TimerHandle> timer_;  // while the executor has refused the drain
};

}  // namespace neuroshard::net
