// Which process: a number alone is given again to others, a number with its start is not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace neuroshard::platform {

struct ProcessIdentity {
  std::int64_t pid = 0;
  std::uint64_t start = 0;  // clock ticks since the machine started; compared, never shown; 0: not known

  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

ProcessIdentity own_process();
// The process that has this number now; nothing when there is none, or the system does not tell (no /proc).
// `proc`: where the system tells of processes.
std::optional<ProcessIdentity> find_process(std::int64_t pid, const std::string& proc = "/proc");
// False: the process has ended. Where the system hides it (/proc with hidepid), any process with its number counts,
// so the caller needs a further proof.
bool may_live(const ProcessIdentity& process, const std::string& proc = "/proc");

}  // namespace neuroshard::platform
