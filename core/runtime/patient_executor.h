// An executor that never refuses a task: a task waits while the inner executor has no room. A chain can't go on
// without its own tasks.
#pragma once

#include <memory>

#include "core/base/executor.h"
#include "core/net/mailbox.h"

namespace neuroshard::runtime {

class PatientExecutor final : public Executor {
 public:
  // The inner executor outlives it.
  explicit PatientExecutor(Executor& inner) : inner_(inner), tasks_(std::make_shared<net::Mailbox>(inner)) {}
  ~PatientExecutor() override { tasks_->close(); }
  bool post(Task task) override {
    tasks_->put(std::move(task));
    return true;
  }
  std::unique_ptr<TimerHandle> post_after(Duration delay, Task task) override {
    return inner_.post_after(delay, std::move(task));
  }
  bool on_thread() const override { return inner_.on_thread(); }

 private:
  Executor& inner_;
  const std::shared_ptr<net::Mailbox> tasks_;
};

}  // namespace neuroshard::runtime
