// A turn of an executor, taken by another thread. A library's thread that has news for an executor which has
// nothing to do brings them itself: waking the executor's thread would cost more than most news.
#pragma once

#include <memory>

#include "core/base/executor.h"

namespace neuroshard {

// Outlives its executor; every turn is refused then.
class Turn {
 public:
  virtual ~Turn() = default;
  // Runs `task` before it returns, on the calling thread, as the executor would: nothing else of it runs
  // meanwhile, and on_thread() is true. False, and nothing was run, when something runs or waits there (so
  // within a task of this executor, always) or it stops: post the task then. The task
  // releases everything that it owns before it ends.
  // Threads: any that may be kept for as long as the task takes.
  [[nodiscard]] virtual bool take(const Executor::Task& task) = 0;
};

// A second interface of executors that lend their turns. Those of make_thread_executor() do.
class TurnLender {
 public:
  virtual ~TurnLender() = default;
  virtual std::shared_ptr<Turn> turn() = 0;
};

}  // namespace neuroshard
