// How long a member waits in a view. The time runs only once a quorum is there: members that came first wait
// for the others, so that all of them have the view's whole time together, as in PBFT (Castro and Liskov
// 1999, section 4.5.2). A member that can expect nothing more of a view gives it up after a tenth of its time.
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
    std::function<void()> over;      // the view's time is over
    std::function<void()> hopeless;  // a tenth of it has passed since give_up_soon()
    std::function<void()> waited;    // since wait_for_others()
  };
  // The executor outlives it.
  ViewClock(Options options, Executor& executor, Calls calls)
      : options_(options), executor_(executor), calls_(std::move(calls)) {}

  // A view begins. Its time runs from start() on.
  void begin(std::uint32_t view);
  void start();
  bool runs() const { return timer_ != nullptr; }
  // Nothing while the time does not run, and the second time in a view.
  void give_up_soon();
  // Of the leader of this view, once.
  void wait_for_others();
  void stop();

  Duration patience(std::uint32_t view) const;

 private:
  const Options options_;
  Executor& executor_;
  const Calls calls_;
  std::uint32_t view_ = 0;
  std::unique_ptr<TimerHandle> timer_, soon_, others_;
};

}  // namespace neuroshard::chain
