#include "core/base/executor.h"

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "core/base/turn.h"

namespace neuroshard {
namespace {

// Shared between the executor, its timers and whoever takes turns, so that these may outlive the executor.
struct Queue final : Turn {
  bool take(const Executor::Task& task) override;

  using Key = std::pair<std::chrono::steady_clock::time_point, std::uint64_t>;
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<Executor::Task> tasks;
  std::map<Key, Executor::Task> timers;
  std::uint64_t next_timer = 0;
  bool stopping = false;
  bool busy = false;        // a task runs, on the executor's thread or as a turn
  bool host_waits = false;  // the executor's thread, for the end of a turn
  bool look_again = false;  // a turn has set the earliest timer
  std::atomic<std::thread::id> guest{};
};

bool Queue::take(const Executor::Task& task) {
  {
    const std::lock_guard lock(mutex);
    // Nor when the executor's own thread is next, for a timer: many guests could keep it waiting.
    if (stopping || busy || host_waits || !tasks.empty()) return false;
    busy = true;
  }
  guest = std::this_thread::get_id();
  task();
  guest = std::thread::id();
  bool needed = false;
  {
    const std::lock_guard lock(mutex);
    busy = false;
    needed = host_waits || look_again || !tasks.empty();
  }
  if (needed) wake.notify_one();
  return true;
}

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

class ThreadExecutor final : public Executor, public TurnLender {
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
    bool waits = false;
    {
      std::lock_guard lock(queue_->mutex);
      if (queue_->stopping || queue_->tasks.size() >= capacity_) return false;
      queue_->tasks.push_back(std::move(task));
      waits = !queue_->busy;  // else it is seen when the running task ends
    }
    if (waits) queue_->wake.notify_one();
    return true;
  }

  std::unique_ptr<TimerHandle> post_after(Duration delay, Task task) override {
    Queue::Key key;
    bool waits = false;
    {
      std::lock_guard lock(queue_->mutex);
      key = {std::chrono::steady_clock::now() + delay, queue_->next_timer++};
      if (!queue_->stopping) {
        const bool earliest = queue_->timers.emplace(key, std::move(task)).first == queue_->timers.begin();
        waits = earliest && !queue_->busy;
        if (earliest) queue_->look_again = true;
      }
    }
    if (waits) queue_->wake.notify_one();
    return std::make_unique<QueueTimer>(queue_, key);
  }

  bool on_thread() const override {
    const auto self = std::this_thread::get_id();
    return self == thread_.get_id() || self == queue_->guest.load();
  }
  std::shared_ptr<Turn> turn() override { return queue_; }

 private:
  void run() {
    std::unique_lock lock(queue_->mutex);
    for (;;) {
      if (queue_->busy) {  // somebody's turn
        queue_->host_waits = true;
        queue_->wake.wait(lock);
        queue_->host_waits = false;
        continue;
      }
      queue_->look_again = false;
      if (Task task = next(); task) {
        queue_->busy = true;
        lock.unlock();
        task();
        task = nullptr;  // destroyed outside the lock: it may own timers
        lock.lock();
        queue_->busy = false;
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

  // With the lock. A due timer stays where its handle finds it until it runs: in the queue it would outlive
  // who cancels it in a task before. Timers and tasks take turns.
  Task next() {
    Task task;
    const bool due =
        !queue_->timers.empty() && queue_->timers.begin()->first.first <= std::chrono::steady_clock::now();
    timer_ran_ = due && (queue_->tasks.empty() || !timer_ran_);
    if (timer_ran_) {
      task = std::move(queue_->timers.extract(queue_->timers.begin()).mapped());
    } else if (!queue_->tasks.empty()) {
      task = std::move(queue_->tasks.front());
      queue_->tasks.pop_front();
    }
    return task;
  }

  const std::size_t capacity_;
  bool timer_ran_ = false;  // last; the executor's own thread
  std::shared_ptr<Queue> queue_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Executor> make_thread_executor(const char* thread_name, std::size_t queue_capacity) {
  return std::make_unique<ThreadExecutor>(thread_name, queue_capacity);
}

}  // namespace neuroshard
