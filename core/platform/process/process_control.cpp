#include "core/platform/process/process_control.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>

namespace neuroshard::platform {

void leave_session() {
  setsid();  // fails only for a leader of a group, which a new child is not
}

Expected<void> ask_to_end(const ProcessIdentity& process) {
  const auto now = find_process(process.pid);
  if (!now || !(*now == process)) return make_error(ErrorCode::NotFound, "the process has already ended");
  if (kill(static_cast<pid_t>(process.pid), SIGTERM) == 0) return {};
  if (errno == ESRCH) return make_error(ErrorCode::NotFound, "the process has already ended");
  return make_error(ErrorCode::Denied, "the process belongs to another user");
}

}  // namespace neuroshard::platform
