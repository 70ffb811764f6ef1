#include "core/platform/process/process_control.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

#include "core/platform/file/directory_lock.h"

namespace neuroshard::platform {

void leave_session() {
  setsid();  // fails only for a leader of a group, which a new child is not
}

Expected<void> ask_to_end(const ProcessIdentity& process, const std::string& data_directory,
                          const std::string& proc) {
  if (!may_live(process, proc)) return make_error(ErrorCode::NotFound, "the process has already ended");
  // Only its number is known of a hidden process, and another one may have that by now.
  if (find_process(process.pid, proc) != process && !holds_lock(process.pid, data_directory))
    return make_error(ErrorCode::Denied,
                      fmt::format("the system hides which program process {} is: end it yourself if it is "
                                  "the node",
                                  process.pid));
  if (kill(static_cast<pid_t>(process.pid), SIGTERM) == 0) return {};
  if (errno == ESRCH) return make_error(ErrorCode::NotFound, "the process has already ended");
  return make_error(ErrorCode::Denied, "the process belongs to another user");
}

}  // namespace neuroshard::platform
