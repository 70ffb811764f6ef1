// Time that goes on by itself and jumps when told to.  Threads: any.
#pragma once

#include <atomic>

#include "core/base/clock.h"

namespace neuroshard::testing {

class JumpingClock final : public Clock {
 public:
  MonotonicTime monotonic_now() const override { return real_.monotonic_now() + Duration(ahead_.load()); }
  WallTime wall_now() const override {
    return real_.wall_now() + std::chrono::duration_cast<std::chrono::milliseconds>(
                                  Duration(ahead_.load() + wall_ahead_.load()));
  }
  void jump(Duration by) { ahead_ += by.count(); }
  // Somebody sets the wall clock.
  void set_back(Duration by) { wall_ahead_ -= by.count(); }

 private:
  SystemClock real_;
  std::atomic<Duration::rep> ahead_{0}, wall_ahead_{0};
};

}  // namespace neuroshard::testing
