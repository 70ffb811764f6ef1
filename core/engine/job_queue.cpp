#include "core/engine/job_queue.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace neuroshard::engine {

bool JobQueue::Lane::post(Task task) {
  {
    std::lock_guard lock(queue_.mutex_);
    if (queue_.closed_ || tasks.size() >= capacity) return false;
    tasks.push_back(std::move(task));
  }
  queue_.arrived_.notify_one();
  return true;
}

std::unique_ptr<TimerHandle> JobQueue::Lane::post_after(Duration, Task) {
  NS_CHECK(false);
}

std::optional<JobQueue::Kind> JobQueue::run_one(Duration wait) {
  const Lane* const ran = run_of({&texts_, &training_}, wait);
  if (ran == nullptr) return std::nullopt;
  return ran == &texts_ ? Kind::Text : Kind::Training;
}

bool JobQueue::run_text(Duration wait) {
  return run_of({&texts_}, wait) != nullptr;
}

const JobQueue::Lane* JobQueue::run_of(std::initializer_list<Lane*> lanes, Duration wait) {
  Executor::Task task;
  const Lane* ran = nullptr;
  {
    const auto next = [&] {
      return std::find_if(lanes.begin(), lanes.end(), [](const Lane* lane) { return !lane->tasks.empty(); });
    };
    std::unique_lock lock(mutex_);
    arrived_.wait_for(lock, wait, [&] { return next() != lanes.end(); });
    if (next() == lanes.end()) return nullptr;
    Lane& lane = **next();
    task = std::move(lane.tasks.front());
    lane.tasks.pop_front();
    ran = &lane;
  }
  runner_ = std::this_thread::get_id();
  task();
  runner_ = std::thread::id();
  return ran;
}

void JobQueue::close() {
  std::deque<Executor::Task> dropped, dropped_texts;
  std::lock_guard lock(mutex_);
  closed_ = true;
  dropped.swap(training_.tasks);
  dropped_texts.swap(texts_.tasks);
}

}  // namespace neuroshard::engine
