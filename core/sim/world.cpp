#include "core/sim/world.h"

#include <algorithm>

namespace neuroshard::sim {
namespace {

class Timer final : public TimerHandle {
 public:
  explicit Timer(std::shared_ptr<bool> wanted) : wanted_(std::move(wanted)) {}
  ~Timer() override { *wanted_ = false; }

 private:
  std::shared_ptr<bool> wanted_;
};

}  // namespace

void World::at(MonotonicTime when, std::function<void()> event) {
  queue_.push_back({std::max(when, now()), made_++, std::move(event)});
  std::push_heap(queue_.begin(), queue_.end(), Later());
}

void World::run_next() {
  std::pop_heap(queue_.begin(), queue_.end(), Later());
  const Event event = std::move(queue_.back());
  queue_.pop_back();
  clock_.advance(event.when - now());
  ++events_;
  event.run();
}

void World::run_until(MonotonicTime end) {
  while (!queue_.empty() && queue_.front().when <= end && !stop_.cancelled()) run_next();
  if (now() < end) clock_.advance(end - now());
}

bool World::run_until(const std::function<bool()>& condition, MonotonicTime end) {
  while (!condition()) {
    if (queue_.empty() || queue_.front().when > end || stop_.cancelled()) return false;
    run_next();
  }
  return true;
}

bool HostExecutor::post(Task task) {
  if (!*running_) return false;
  world_->after(Duration(0), [running = running_, task = std::move(task)] {
    if (*running) task();
  });
  return true;
}

std::unique_ptr<TimerHandle> HostExecutor::post_after(Duration delay, Task task) {
  auto wanted = std::make_shared<bool>(true);
  world_->after(delay, [running = running_, wanted, task = std::move(task)] {
    if (*running && *wanted) task();
  });
  return std::make_unique<Timer>(std::move(wanted));
}

}  // namespace neuroshard::sim
