// The simulated world: a virtual clock and one queue of events, so that hours of thousands of nodes pass in
// seconds and a seed replays a run exactly. The protocols that run on it are the production ones: they see an
// Executor, a Clock and a PeerCaller (sim/network.h), and cannot tell. In core and not in the tests, because
// `neuroshardd simulate` runs it too.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
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

  // The wall time of all hosts jumps; what is due is due when it was.
  void jump_wall(std::chrono::milliseconds by) { clock_.jump_wall(by); }

  // Once it is cancelled nothing runs any more, and both return.
  void stop_with(CancelToken stop) { stop_ = std::move(stop); }

  std::uint64_t events() const { return events_; }  // run so far

 private:
  struct Event {
    MonotonicTime when;
    std::function<void()> run;
  };
  std::size_t bucket_of(MonotonicTime when) const;
  bool ready(MonotonicTime end);
  void run_next();

  ManualClock clock_;
  CancelToken stop_;
  // A radix heap (Ahuja et al. 1990), because time only goes on: an event lies in the bucket of the highest
  // bit in which its time differs from base_, and moves down a few times before it is due, over memory in
  // order. Millions wait at a time, most of them for deadlines that nothing will come of. Events of one
  // instant are always in one bucket, in the order of their making.
  std::array<std::vector<Event>, 65> buckets_;
  MonotonicTime base_{};  // the instant of bucket 0; not after now()
  std::size_t done_ = 0;  // of bucket 0
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
