// Programs that this one starts and may ask to end.
#pragma once

#include "core/base/expected.h"
#include "core/platform/process/process_identity.h"

namespace neuroshard::platform {

// In a child between fork and exec: away from the parent's terminal and process group, so that neither Ctrl-C
// there nor the end of that session reaches it. Async-signal-safe.
void leave_session();

// Asks for a clean end (SIGTERM). NotFound: that very process has ended; another one that got its number is
// left alone. Denied: it is somebody else's.
Expected<void> ask_to_end(const ProcessIdentity& process);

}  // namespace neuroshard::platform
