#include "core/chain/detail/view_clock.h"

#include <algorithm>
#include <utility>

namespace neuroshard::chain {
namespace {

constexpr int soon_part = 10;  // of a view's time

}  // namespace

Duration ViewClock::patience(std::uint32_t view) const {
  Duration patience = options_.first_view;
  for (std::uint32_t i = 0; i < view && patience < options_.longest_view; ++i) patience += patience / 2;
  return std::min(patience, options_.longest_view);
}

void ViewClock::begin(std::uint32_t view) {
  view_ = view;
  pace_ = Pace::InStep;
  others_.reset();
  arm();
}

void ViewClock::arm() {
  soon_.reset();
  timer_ = executor_.post_after(patience(view_), [this] { time_is_over(); });
}

void ViewClock::time_is_over() {
  if (pace_ == Pace::Stopped) return;
  if (pace_ == Pace::InStep) return calls_.over();
  pace_ = Pace::InStep;
  arm();  // what ended was the time of the view before
  calls_.caught_up();
}

void ViewClock::give_up_soon() {
  if (pace_ != Pace::InStep || soon_) return;
  soon_ = executor_.post_after(patience(view_) / soon_part, [this, view = view_] {
    const std::unique_ptr<TimerHandle> over = std::move(soon_);
    if (pace_ == Pace::InStep && view == view_) calls_.hopeless();
  });
}

void ViewClock::run_ahead(std::uint32_t next, const std::function<void()>& enter) {
  std::unique_ptr<TimerHandle> rest = std::move(timer_);
  enter();
  if (pace_ != Pace::InStep || view_ != next) return;
  pace_ = Pace::Ahead;
  soon_.reset();  // what the next leader has proposed already may be refused, too
  timer_ = std::move(rest);
}

void ViewClock::wait_for_others() {
  others_ = executor_.post_after(patience(view_) / options_.others_part, [this, view = view_] {
    const std::unique_ptr<TimerHandle> over = std::move(others_);
    if (pace_ != Pace::Stopped && view == view_) calls_.waited();
  });
}

void ViewClock::stop() {
  pace_ = Pace::Stopped;
  others_.reset();
  timer_.reset();
  soon_.reset();
}

}  // namespace neuroshard::chain
