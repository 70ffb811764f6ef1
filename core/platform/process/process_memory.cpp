#include "core/platform/process/process_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "core/platform/process/detail/cgroup.h"
#include "core/platform/sensor/detail/small_file.h"

namespace neuroshard::platform {
namespace {

using detail::number_after;
using detail::parse_number;
using detail::read_small_file;

constexpr std::uint64_t kib = 1024;

struct GroupFiles {
  const char* limit;
  const char* usage;
  const char* inactive_file;  // key in memory.stat: page cache that the kernel drops first
};
constexpr GroupFiles v2_files{"/memory.max", "/memory.current", "inactive_file"};
constexpr GroupFiles v1_files{"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file"};

void limit_by_groups(const std::vector<std::string>& folders, const GroupFiles& files,
                     AvailableMemory& memory) {
  for (const std::string& folder : folders) {
    const auto limit = parse_number(read_small_file(folder + files.limit));
    // v1 writes "no limit" as a number near 2^63.
    if (!limit || *limit > std::numeric_limits<std::uint64_t>::max() / 4) continue;
    const auto usage = parse_number(read_small_file(folder + files.usage));
    if (!usage) continue;
    const std::uint64_t cache =
        number_after(read_small_file(folder + "/memory.stat"), files.inactive_file).value_or(0);
    const std::uint64_t used = *usage - std::min(cache, *usage);
    const std::uint64_t headroom = *limit - std::min(used, *limit);
    if (memory.total == 0 || *limit < memory.total) memory.total = *limit;
    if (headroom < memory.available) {
      memory.available = headroom;
      memory.limited_by = "control group";
    }
  }
}

void limit_by_address_space(const std::string& root, AvailableMemory& memory) {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  const std::string status = read_small_file(root + "/proc/self/status");
  const std::uint64_t mapped = number_after(status, "VmSize:").value_or(0) * kib;
  const std::uint64_t headroom = limit.rlim_cur - std::min<std::uint64_t>(mapped, limit.rlim_cur);
  if (headroom < memory.available) {
    memory.available = headroom;
    memory.limited_by = "address space limit";
  }
}

}  // namespace

ProcessMemory process_memory() {
  const std::string status = read_small_file("/proc/self/status");
  ProcessMemory memory;
  if (const auto resident = number_after(status, "VmRSS:")) memory.resident = *resident * kib;
  if (const auto peak = number_after(status, "VmHWM:")) memory.peak_resident = *peak * kib;
  return memory;
}

AvailableMemory available_memory() {
  return available_memory("");
}

AvailableMemory available_memory(const std::string& root) {
  const std::string machine = read_small_file(root + "/proc/meminfo");
  AvailableMemory memory;
  memory.total = number_after(machine, "MemTotal:").value_or(0) * kib;
  memory.available = number_after(machine, "MemAvailable:").value_or(0) * kib;
  if (memory.total == 0) return memory;
  const detail::CgroupFolders folders =
      detail::cgroup_folders(read_small_file(root + "/proc/self/cgroup"), root + "/sys/fs/cgroup");
  limit_by_groups(folders.v2, v2_files, memory);
  limit_by_groups(folders.v1_memory, v1_files, memory);
  limit_by_address_space(root, memory);
  return memory;
}

}  // namespace neuroshard::platform
