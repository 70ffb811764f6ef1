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
  using Timers = std::map<Key, Executor::Task>;
  struct Waiting {
    Executor::Task task;  // none: the timer's, if that is still there
    Key timer;
  };
  // With the lock. The next task, none when nothing waits. Due timers line up behind what was posted before,
  // but their tasks stay where their handles find them: a task that destroys a handle on its way is not
  // followed by the timer.
  Executor::Task next();

  std::mutex mutex;
  std::condition_variable wake;
  std::deque<Waiting> tasks;
  Timers timers;    // not due yet
  Timers lined_up;  // due: `tasks` holds their keys
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

Executor::Task Queue::next() {
  const auto now = std::chrono::steady_clock::now();
  while (!timers.empty() && timers.begin()->first.first <= now) {
    tasks.push_back({nullptr, timers.begin()->first});
    lined_up.insert(timers.extract(timers.begin()));
  }
  while (!tasks.empty()) {
    Waiting first = std::move(tasks.front());
    tasks.pop_front();
    if (first.task) return std::move(first.task);
    if (auto timer = lined_up.extract(first.timer)) return std::move(timer.mapped());
  }
  return nullptr;
}

class QueueTimer final : public TimerHandle {
 public:
  QueueTimer(std::shared_ptr<Queue> queue, Queue::Key key) : queue_(std::move(queue)), key_(key) {}
  ~QueueTimer() override {
    Queue::Timers::node_type cancelled;  // destroyed outside the lock: it may own timers
    std::lock_guard lock(queue_->mutex);
    cancelled = queue_->timers.extract(key_);
    if (!cancelled) cancelled = queue_->lined_up.extract(key_);
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
    Queue::Timers dropped;  // destroyed outside the lock: a task may own timers
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
      queue_->tasks.push_back({std::move(task), {}});
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
      if (Task task = queue_->next(); task) {
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

  const std::size_t capacity_;
  std::shared_ptr<Queue> queue_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Executor> make_thread_executor(const char* thread_name, std::size_t queue_capacity) {
  return std::make_unique<ThreadExecutor>(thread_name, queue_capacity);
}

}  // namespace neuroshard
