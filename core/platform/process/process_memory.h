// Memory of this process and what it may still take. All sizes in bytes. Linux; elsewhere the fields stay
// unknown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace neuroshard::platform {

struct ProcessMemory {
  std::optional<std::uint64_t> resident;       // now
  std::optional<std::uint64_t> peak_resident;  // since the start
};
// Cost: one small file of /proc; fine once per training step.
ProcessMemory process_memory();

struct AvailableMemory {
  std::uint64_t total = 0;  // of the machine, or of the control group when that is smaller; 0: unknown
  std::uint64_t available =
      0;  // what can be taken now without swapping or being killed; 0: unknown or nothing left
  // The source of `available`: "machine", "control group" or "address space limit" (RLIMIT_AS).
  const char* limited_by = "machine";
};
// The smallest of the kernel's MemAvailable, the headroom of every enclosing control group (v1 and v2; page
// cache that can be dropped counts as free), and RLIMIT_AS less what is mapped.
AvailableMemory available_memory();

// The same from another root directory instead of "/", for tests: `root`/proc/meminfo, `root`/sys/fs/cgroup,
// …
AvailableMemory available_memory(const std::string& root);

}  // namespace neuroshard::platform
