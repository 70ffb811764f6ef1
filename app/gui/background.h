// A thread for what may block (files on a slow disk, opening a connection, questions to the desktop), so that
// the UI thread never waits. Jobs run one after another.
#pragma once

#include <QObject>
#include <functional>
#include <memory>

#include "core/base/executor.h"

namespace neuroshard::gui {

// Threads: made and destroyed on one; run() from any. Destruction waits for the jobs that are there.
class Background {
 public:
  static constexpr std::size_t max_jobs = 64;

  explicit Background(const char* name);

  // False, and nothing happens, while max_jobs wait, as with a disk that hangs. Callers that run regularly
  // try again.
  bool run(std::function<void()> job);
  // The result comes back to the context's thread, unless it is gone by then.
  template <class Work, class Then>
  bool run(QObject* context, Work work, Then then) {
    return run(
        [guard = std::make_shared<Guard>(context), work = std::move(work), then = std::move(then)]() mutable {
          auto result = std::make_shared<decltype(work())>(work());
          guard->post([then = std::move(then), result]() mutable { then(std::move(*result)); });
        });
  }

 private:
  // Represents the context: an object in the context's thread, the only thread that may touch the context. It
  // is destroyed with the call, because an event loop may destroy an object before it runs a call that was
  // posted earlier.
  class Guard {
   public:
    explicit Guard(QObject* context);
    ~Guard();
    void post(std::function<void()> call);  // once

   private:
    QObject* stand_in_;
  };

  std::unique_ptr<Executor> executor_;
};

}  // namespace neuroshard::gui
