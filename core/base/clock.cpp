#include "core/base/clock.h"

namespace neuroshard {

MonotonicTime SystemClock::monotonic_now() const {
  return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now());
}

WallTime SystemClock::wall_now() const {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

}  // namespace neuroshard
