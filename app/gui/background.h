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

  // False, and nothing happens, while max_jobs wait: a disk that hangs; whoever asks regularly asks again.
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
  // Stands in for the context: an object of its own in the context's thread, where alone the context is
  // looked at. It goes with the call: an event loop may take the end of an object out of its turn, before a
  // call that was posted earlier.
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
