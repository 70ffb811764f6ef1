#include "app/node/output/duration.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <charconv>
#include <ctime>

#include "core/node/node.h"

namespace neuroshard::app {
namespace {

constexpr int morning_hour = 6;  // the hour of "tomorrow"

// The time until 6:00 of the next day in the user's time zone.
std::chrono::seconds until_tomorrow(WallTime now) {
  const std::time_t seconds =
      std::chrono::system_clock::to_time_t(std::chrono::floor<std::chrono::seconds>(now));
  std::tm local = fmt::localtime(seconds);
  local.tm_mday += 1;
  local.tm_hour = morning_hour;
  local.tm_min = local.tm_sec = 0;
  local.tm_isdst = -1;
  return std::chrono::seconds(std::mktime(&local) - seconds);
}

}  // namespace

Expected<std::chrono::seconds> parse_duration(const std::string& text, WallTime now) {
  if (text == "tomorrow") return until_tomorrow(now);
  std::uint32_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const std::uint64_t factor = unit == "s" ? 1 : unit == "min" ? 60 : unit == "h" ? 3600 : 0;
  const std::uint64_t seconds = number * factor;
  if (failed != std::errc() || seconds == 0 ||
      seconds > static_cast<std::uint64_t>(node::max_snooze.count())) {
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("'{}' is not a valid duration: use 15min, 1h, 4h, tomorrow, or another "
                                  "number of s, min or h up to a week",
                                  text.substr(0, 40)));
  }
  return std::chrono::seconds(seconds);
}

}  // namespace neuroshard::app
