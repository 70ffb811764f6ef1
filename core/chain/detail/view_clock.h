// How long a member waits in a view. It gives up a view that can certify nothing any more after a tenth of
// its time. The others' views may last longer, so it is at most one view ahead of them until its own time for
// the view before would have been over.
//
// Threads: the executor's. The callbacks come from timers only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/executor.h"

namespace neuroshard::chain {

class ViewClock {
 public:
  struct Options {
    Duration first_view = std::chrono::seconds(10);  // grows by half with each view
    Duration longest_view = std::chrono::minutes(2);
    int others_part = 20;  // of a view's time: what a leader waits for more than a quorum
  };
  struct Calls {
    std::function<void()> over;       // the view's time is over
    std::function<void()> hopeless;   // a tenth of it has passed since give_up_soon()
    std::function<void()> caught_up;  // this member was ahead; from now on it is not
    std::function<void()> waited;     // since wait_for_others()
  };
  // The executor outlives it.
  ViewClock(Options options, Executor& executor, Calls calls)
      : options_(options), executor_(executor), calls_(std::move(calls)) {}

  // A view begins, and its time.
  void begin(std::uint32_t view);
  // Nothing while this member is ahead, and the second time in a view.
  void give_up_soon();
  // In `hopeless`: begins the next view by `enter`, which calls begin(). If it led no further than that view,
  // this member is ahead and the time of the view before runs on.
  void run_ahead(std::uint32_t next, const std::function<void()>& enter);
  // Of the leader of this view, once.
  void wait_for_others();
  void stop();

  Duration patience(std::uint32_t view) const;

 private:
  enum class Pace : std::uint8_t { Stopped, InStep, Ahead };
  void time_is_over();
  void arm();

  const Options options_;
  Executor& executor_;
  const Calls calls_;
  Pace pace_ = Pace::Stopped;
  std::uint32_t view_ = 0;
  std::unique_ptr<TimerHandle> timer_, soon_, others_;
};

}  // namespace neuroshard::chain
