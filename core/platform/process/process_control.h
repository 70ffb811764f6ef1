// Programs that this one starts and may ask to end.
#pragma once

#include <string>

#include "core/base/expected.h"
#include "core/platform/process/process_identity.h"

namespace neuroshard::platform {

// In a child between fork and exec: away from the parent's terminal and process group, so that neither Ctrl-C
// there nor the end of that session reaches it. Async-signal-safe.
void leave_session();

// Asks for a clean end (SIGTERM). NotFound: that very process has ended; another one that got its number is
// left alone. Denied: it is somebody else's, or the system hides it (/proc with hidepid) and it does not hold
// the lock of `data_directory`. `proc`: where the system tells of processes.
Expected<void> ask_to_end(const ProcessIdentity& process, const std::string& data_directory,
                          const std::string& proc = "/proc");

}  // namespace neuroshard::platform
