// Time, injected. Monotonic time measures; wall time is shown and stored. No other code reads a system clock.
#pragma once

#include <chrono>
#include <cstdint>

namespace neuroshard {

using Duration = std::chrono::nanoseconds;
// Since an arbitrary start; never goes back.
using MonotonicTime = std::chrono::time_point<std::chrono::steady_clock, Duration>;
// Milliseconds since 1970-01-01 UTC; may jump.
using WallTime = std::chrono::time_point<std::chrono::system_clock, std::chrono::milliseconds>;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual MonotonicTime monotonic_now() const = 0;
  virtual WallTime wall_now() const = 0;
};

// The machine's clocks. Threads: any.
class SystemClock final : public Clock {
 public:
  MonotonicTime monotonic_now() const override;
  WallTime wall_now() const override;
};

// A clock that moves only when told to; for tests and simulations. Threads: one.
class ManualClock final : public Clock {
 public:
  MonotonicTime monotonic_now() const override { return MonotonicTime(elapsed_); }
  WallTime wall_now() const override {
    return WallTime(epoch_ + std::chrono::duration_cast<std::chrono::milliseconds>(elapsed_));
  }
  void advance(Duration by) { elapsed_ += by; }
  // Wall time alone, as when the machine was suspended or its clock is set.
  void jump_wall(std::chrono::milliseconds by) { epoch_ += by; }

 private:
  Duration elapsed_{0};
  std::chrono::milliseconds epoch_{1'700'000'000'000};
};

inline double to_seconds(Duration d) {
  return std::chrono::duration<double>(d).count();
}
inline std::int64_t to_unix_ms(WallTime t) {
  return t.time_since_epoch().count();
}

}  // namespace neuroshard
