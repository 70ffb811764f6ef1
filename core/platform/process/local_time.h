// Local time of this machine's (or the user's, TZ) time zone, daylight saving included. A change of the zone takes effect at
// once.
#pragma once

#include "core/base/local_time.h"

namespace neuroshard::platform {

LocalTime local_time(WallTime at);

}  // namespace neuroshard::platform
