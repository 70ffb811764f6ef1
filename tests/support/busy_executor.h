// An executor whose queue is full for a number of tasks. Header only.
#pragma once

#include <memory>
#include <utility>

#include "tests/support/manual_executor.h"

namespace neuroshard::testing {

class BusyExecutor final : public Executor {
 public:
  explicit BusyExecutor(int refuses = 0) : refused(refuses) {}
  bool post(Task task) override { return refused-- > 0 ? false : manual.post(std::move(task)); }
  std::unique_ptr<TimerHandle> post_after(Duration delay, Task task) override {
    return manual.post_after(delay, std::move(task));
  }
  bool on_thread() const override { return manual.on_thread(); }

  int refused;  // tasks, from the next one on
  ManualExecutor manual;
};

}  // namespace neuroshard::testing
