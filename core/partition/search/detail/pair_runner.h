// Two pieces of work at the same time: one on the calling thread, one on a thread of its own.
#pragma once

#include <functional>
#include <latch>
#include <memory>

#include "core/base/executor.h"

namespace neuroshard::partition::detail {

class PairRunner {
 public:
  PairRunner() : executor_(make_thread_executor("partition", 4)) {}

  // Returns when both have.
  void run(const std::function<void()>& here, const std::function<void()>& there) {
    std::latch done(1);
    const bool posted = executor_->post([&] {
      there();
      done.count_down();
    });
    here();
    if (!posted) {
      there();
      return;
    }
    done.wait();
  }

 private:
  std::unique_ptr<Executor> executor_;
};

}  // namespace neuroshard::partition::detail
