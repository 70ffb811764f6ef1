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
  stop();
  view_ = view;
}

void ViewClock::start() {
  timer_ = executor_.post_after(patience(view_), [this] { calls_.over(); });
}

void ViewClock::give_up_soon() {
  if (!runs() || soon_) return;
  soon_ = executor_.post_after(patience(view_) / soon_part, [this] {
    const std::unique_ptr<TimerHandle> over = std::move(soon_);
    calls_.hopeless();
  });
}

void ViewClock::wait_for_others() {
  others_ = executor_.post_after(patience(view_) / options_.others_part, [this] {
    const std::unique_ptr<TimerHandle> over = std::move(others_);
    calls_.waited();
  });
}

void ViewClock::stop() {
  timer_.reset();
  soon_.reset();
  others_.reset();
}

}  // namespace neuroshard::chain
