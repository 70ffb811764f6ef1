#include "core/platform/process/local_time.h"

#include <ctime>

namespace neuroshard::platform {

LocalTime local_time(WallTime at) {
  const std::time_t seconds =
      std::chrono::system_clock::to_time_t(std::chrono::floor<std::chrono::seconds>(at));
  std::tm broken_down{};
#if defined(_WIN32)
  localtime_s(&broken_down, &seconds);
#else
  ::tzset();  // localtime_r looks at /etc/localtime once in a process
  localtime_r(&seconds, &broken_down);
#endif
  LocalTime local;
  local.year = broken_down.tm_year + 1900;
  local.day_of_year = broken_down.tm_yday;
  local.weekday = (broken_down.tm_wday + 6) % 7;  // tm_wday counts from Sunday
  local.hour = broken_down.tm_hour;
  local.minute = broken_down.tm_min;
  return local;
}

}  // namespace neuroshard::platform
