// Local time of this machine's (or the user's, TZ) time zone, daylight saving included.
#pragma once

#include "core/base/local_time.h"

namespace neuroshard::platform {

LocalTime local_time(WallTime at);

}  // namespace neuroshard::platform
