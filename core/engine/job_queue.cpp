#include "core/engine/job_queue.h"

#include <utility>

#include "core/base/check.h"

namespace neuroshard::engine {

bool JobQueue::post(Task task) {
  {
    std::lock_guard lock(mutex_);
    if (closed_ || tasks_.size() >= capacity) return false;
    tasks_.push_back(std::move(task));
  }
  arrived_.notify_one();
  return true;
}

std::unique_ptr<TimerHandle> JobQueue::post_after(Duration, Task) {
  NS_CHECK(false);
}

bool JobQueue::on_thread() const {
  return runner_.load() == std::this_thread::get_id();
}

bool JobQueue::run_one(Duration wait) {
  Task task;
  {
    std::unique_lock lock(mutex_);
    arrived_.wait_for(lock, wait, [this] { return !tasks_.empty(); });
    if (tasks_.empty()) return false;
    task = std::move(tasks_.front());
    tasks_.pop_front();
  }
  runner_ = std::this_thread::get_id();
  task();
  runner_ = std::thread::id();
  return true;
}

void JobQueue::close() {
  std::deque<Task> dropped;
  std::lock_guard lock(mutex_);
  closed_ = true;
  dropped.swap(tasks_);
}

}  // namespace neuroshard::engine
