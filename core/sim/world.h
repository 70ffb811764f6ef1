// The simulated world: a virtual clock and one queue of events, so that hours of thousands of nodes pass in
// seconds and a seed replays a run exactly. The protocols that run on it are the production ones: they see an
// Executor, a Clock and a PeerCaller (sim/network.h), and cannot tell. In core and not in the tests, because
// `neuroshardd simulate` runs it too.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <vector>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/executor.h"

namespace neuroshard::sim {

class World {
 public:
  const Clock& clock() const { return clock_; }
  MonotonicTime now() const { return clock_.monotonic_now(); }

  // Events at the same instant run in the order they were made.  Threads: one, everything here.
  void at(MonotonicTime when, std::function<void()> event);
  void after(Duration delay, std::function<void()> event) { at(now() + delay, std::move(event)); }

  // Runs what is due until `end`; the clock then stands at `end`.
  void run_until(MonotonicTime end);
  void run_for(Duration duration) { run_until(now() + duration); }
  // Runs until `condition` holds, at most until `end`; whether it held.
  bool run_until(const std::function<bool()>& condition, MonotonicTime end);

  // Once it is cancelled nothing runs any more, and both return.
  void stop_with(CancelToken stop) { stop_ = std::move(stop); }

  std::uint64_t events() const { return events_; }  // run so far

 private:
  struct Event {
    MonotonicTime when;
    std::uint64_t order;
    std::function<void()> run;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.when != b.when ? a.when > b.when : a.order > b.order;
    }
  };
  void run_next();

  ManualClock clock_;
  CancelToken stop_;
  std::vector<Event> queue_;  // a heap
  std::uint64_t made_ = 0;
  std::uint64_t events_ = 0;
};

// One host's executor. After stop() its tasks and timers do nothing, as if the machine had lost power.
class HostExecutor final : public Executor {
 public:
  explicit HostExecutor(World& world) : world_(&world), running_(std::make_shared<bool>(true)) {}
  ~HostExecutor() override { stop(); }
  bool post(Task task) override;
  std::unique_ptr<TimerHandle> post_after(Duration delay, Task task) override;
  bool on_thread() const override { return true; }
  void stop() { *running_ = false; }

 private:
  World* world_;
  std::shared_ptr<bool> running_;
};

}  // namespace neuroshard::sim
