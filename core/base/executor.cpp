#include "core/base/executor.h"

#include <pthread.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace neuroshard {
namespace {

// Shared between the executor and its timers, so that a timer may outlive the executor.
struct Queue {
  using Key = std::pair<std::chrono::steady_clock::time_point, std::uint64_t>;
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<Executor::Task> tasks;
  std::map<Key, Executor::Task> timers;
  std::uint64_t next_timer = 0;
  bool stopping = false;
};

class QueueTimer final : public TimerHandle {
 public:
  QueueTimer(std::shared_ptr<Queue> queue, Queue::Key key) : queue_(std::move(queue)), key_(key) {}
  ~QueueTimer() override {
    std::map<Queue::Key, Executor::Task>::node_type
        cancelled;  // destroyed outside the lock: it may own timers
    std::lock_guard lock(queue_->mutex);
    cancelled = queue_->timers.extract(key_);
  }

 private:
  std::shared_ptr<Queue> queue_;
  Queue::Key key_;
};

class ThreadExecutor final : public Executor {
 public:
  ThreadExecutor(const char* name, std::size_t capacity)
      : capacity_(capacity), queue_(std::make_shared<Queue>()), thread_([this, label = std::string(name)] {
          pthread_setname_np(pthread_self(), label.substr(0, 15).c_str());
          run();
        }) {}

  ~ThreadExecutor() override {
    std::map<Queue::Key, Task> dropped;  // destroyed outside the lock: a task may own timers
    {
      std::lock_guard lock(queue_->mutex);
      queue_->stopping = true;
      dropped.swap(queue_->timers);
    }
    queue_->wake.notify_all();
    thread_.join();
  }

  bool post(Task task) override {
    {
      std::lock_guard lock(queue_->mutex);
      if (queue_->stopping || queue_->tasks.size() >= capacity_) return false;
      queue_->tasks.push_back(std::move(task));
    }
    queue_->wake.notify_one();
    return true;
  }

  std::unique_ptr<TimerHandle> post_after(Duration delay, Task task) override {
    Queue::Key key;
    {
      std::lock_guard lock(queue_->mutex);
      key = {std::chrono::steady_clock::now() + delay, queue_->next_timer++};
      if (!queue_->stopping) queue_->timers.emplace(key, std::move(task));
    }
    queue_->wake.notify_one();
    return std::make_unique<QueueTimer>(queue_, key);
  }

  bool on_thread() const override { return std::this_thread::get_id() == thread_.get_id(); }

 private:
  void run() {
    std::unique_lock lock(queue_->mutex);
    for (;;) {
      const auto now = std::chrono::steady_clock::now();
      while (!queue_->timers.empty() && queue_->timers.begin()->first.first <= now) {
        auto due = queue_->timers.extract(queue_->timers.begin());
        queue_->tasks.push_back(std::move(due.mapped()));
      }
      if (!queue_->tasks.empty()) {
        Task task = std::move(queue_->tasks.front());
        queue_->tasks.pop_front();
        lock.unlock();
        task();
        task = nullptr;  // destroyed outside the lock: it may own timers
        lock.lock();
        continue;
      }
      if (queue_->stopping) return;
      if (queue_->timers.empty()) {
        queue_->wake.wait(lock);
      } else {
        const auto due = queue_->timers.begin()->first.first;
        queue_->wake.wait_until(lock, due);
      }
    }
  }

  const std::size_t capacity_;
  std::shared_ptr<Queue> queue_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Executor> make_thread_executor(const char* thread_name, std::size_t queue_capacity) {
  return std::make_unique<ThreadExecutor>(thread_name, queue_capacity);
}

}  // namespace neuroshard
