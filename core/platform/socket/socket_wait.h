// Waiting for sockets and other descriptors.
#pragma once

#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/base/span.h"

namespace neuroshard::platform {

struct SocketWait {
  int descriptor = -1;               // negative: ignored
  bool read = false, write = false;  // asked for; after the wait: possible now, or the connection is over
  bool over = false;                 // after the wait: an error, or both directions ended
};
// Until something happens, at most `limit` (rounded up to milliseconds, not below 0). True when it did; false
// when the time ran out or a signal came. Errors: Io.  Threads: any, on different arrays.
Expected<bool> wait_for(Span<SocketWait> waits, Duration limit);

}  // namespace neuroshard::platform
