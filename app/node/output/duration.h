// Durations on the command line.
#pragma once

#include <chrono>
#include <string>

#include "core/base/clock.h"
#include "core/base/expected.h"

namespace neuroshard::app {

// "15min", "1h", "90s", or "tomorrow": until 6:00 of the next day in the user's time zone. 1 second to a
// week.
Expected<std::chrono::seconds> parse_duration(const std::string& text, WallTime now);

}  // namespace neuroshard::app
