// Which process: a number alone is given again to others, a number with its start is not.
#pragma once

#include <cstdint>
#include <optional>

namespace neuroshard::platform {

struct ProcessIdentity {
  std::int64_t pid = 0;
  std::uint64_t start = 0;  // clock ticks since the machine started; compared, never shown

  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

ProcessIdentity own_process();
// The process that has this number now; nothing when there is none, or the system does not tell (no /proc).
std::optional<ProcessIdentity> find_process(std::int64_t pid);

}  // namespace neuroshard::platform
