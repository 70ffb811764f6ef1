// Two executors without a thread: their tasks run when another thread gives itself to them. The compute thread computes
// the jobs of a pipeline in this way, between jobs of its own. Pieces of texts come first: somebody waits for them, and
// they are short.
//
// Threads: any, unless a comment says otherwise.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <thread>

#include "core/base/executor.h"

namespace neuroshard::engine {

class JobQueue final {
 public:
  static constexpr std::size_t capacity = 4096;  // of each

  JobQueue() : texts_(*this), training_(*this) {}
  Executor& texts() { return texts_; }
  Executor& training() { return training_; }
  // Drops what waits, and whatever comes later.
  void close();

  // ---- The thread that computes.
  enum class Kind : std::uint8_t { Text, Training };
  // Runs the next task, or waits for one up to `wait`, and says whose it was. Nothing: none came.
  std::optional<Kind> run_one(Duration wait);
  bool run_text(Duration wait);  // of texts() only. False: none came

 private:
  class Lane final : public Executor {
   public:
    explicit Lane(JobQueue& queue) : queue_(queue) {}
    // False: full, or closed.
    bool post(Task task) override;
    // Not for this executor: nobody may be there when the time has come.
    std::unique_ptr<TimerHandle> post_after(Duration delay, Task task) override;
    bool on_thread() const override { return queue_.runner_.load() == std::this_thread::get_id(); }

    std::deque<Task> tasks;  // with the queue's lock

   private:
    JobQueue& queue_;
  };
  // Null: no task came.
  const Lane* run_of(std::initializer_list<Lane*> lanes, Duration wait);

  std::mutex mutex_;
  std::condition_variable arrived_;
  Lane texts_, training_;
  bool closed_ = false;
  std::atomic<std::thread::id> runner_{};  // while a task runs
};

}  // namespace neuroshard::engine
