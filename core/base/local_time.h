// A moment as clocks on the wall show it. Users of local time receive a function that converts to it; the
// machine's is in core/platform/process/local_time.h.
#pragma once

#include <functional>

#include "core/base/clock.h"

namespace neuroshard {

struct LocalTime {
  int year = 1970;
  int day_of_year = 0;  // 0 … 365
  int weekday = 3;      // 0 = Monday
  int hour = 0, minute = 0;
};
using LocalTimeFunction = std::function<LocalTime(WallTime)>;

}  // namespace neuroshard
