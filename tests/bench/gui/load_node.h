// A core at full rate, in this process: snapshots and steps a thousand times a second, log lines as fast as
// the test asks. Its logs come from a thread of its own, as those of a real core.
#pragma once

#include <atomic>
#include <memory>

#include "core/base/executor.h"
#include "tests/support/fake_node.h"

namespace neuroshard::testing {

class LoadNode final : public FakeNode {
 public:
  LoadNode();
  ~LoadNode() override;

  void start(int changes_per_second, int log_lines_per_second);
  void stop();
  std::uint64_t log_lines() const;  // written so far
  std::uint64_t changes() const { return changes_.load(); }

  Expected<void> query_logs(const node::LogQuery& query, node::Reply<node::LogPage> reply) override;

 private:
  void change();

  SystemClock clock_;
  std::unique_ptr<TimerHandle> timer_;  // of the executor's thread; outlives it
  std::unique_ptr<Executor> executor_;
  std::atomic<int> per_second_{0}, lines_per_second_{0};
  std::atomic<std::int64_t> log_start_{0};
  std::atomic<std::uint64_t> changes_{0};
  std::atomic<std::uint64_t> lines_before_{0};
};

}  // namespace neuroshard::testing
