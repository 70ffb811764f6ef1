#include "core/sim/world.h"

#include <algorithm>
#include <bit>

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

std::size_t World::bucket_of(MonotonicTime when) const {
  const auto number = [](MonotonicTime time) {
    return static_cast<std::uint64_t>(time.time_since_epoch().count());
  };
  return static_cast<std::size_t>(std::bit_width(number(when) ^ number(base_)));
}

void World::at(MonotonicTime when, std::function<void()> event) {
  when = std::max(when, now());
  buckets_[bucket_of(when)].push_back({when, std::move(event)});
}

// Whether an event is due until `end`; it is then the next of bucket 0. Nothing moves otherwise, because
// events before that one may still be made.
bool World::ready(MonotonicTime end) {
  if (done_ < buckets_[0].size()) return base_ <= end;
  buckets_[0].clear();
  done_ = 0;
  const auto lowest =
      std::find_if(buckets_.begin(), buckets_.end(), [](const auto& b) { return !b.empty(); });
  if (lowest == buckets_.end()) return false;
  const MonotonicTime first =
      std::min_element(lowest->begin(), lowest->end(), [](const Event& a, const Event& b) {
        return a.when < b.when;
      })->when;
  if (first > end) return false;
  base_ = first;
  std::vector<Event> moving;
  moving.swap(*lowest);
  for (Event& event : moving) buckets_[bucket_of(event.when)].push_back(std::move(event));
  return true;
}

void World::run_next() {
  const Event event = std::move(buckets_[0][done_++]);
  clock_.advance(event.when - now());
  ++events_;
  event.run();
}

void World::run_until(MonotonicTime end) {
  while (!stop_.cancelled() && ready(end)) run_next();
  if (now() < end) clock_.advance(end - now());
}

bool World::run_until(const std::function<bool()>& condition, MonotonicTime end) {
  while (!condition()) {
    if (stop_.cancelled()) return false;
    if (!ready(end)) {
      if (now() < end) clock_.advance(end - now());
      return condition();
    }
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
