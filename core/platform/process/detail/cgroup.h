// The control groups this process is in, v1 and v2, with every ancestor: a limit on any of them holds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace neuroshard::platform::detail {

struct CgroupFolders {
  std::vector<std::string> v2;         // of the unified hierarchy, innermost first
  std::vector<std::string> v1_memory;  // of the memory controller
  std::vector<std::string> v1_cpu;     // of the cpu controller
};

// `proc_cgroup` is the text of /proc/self/cgroup; `mount` is /sys/fs/cgroup. Inside a container the named
// folder may be missing below the mount, which then is the container's own group: the mount itself is always
// in the lists.
CgroupFolders cgroup_folders(std::string_view proc_cgroup, const std::string& mount);

}  // namespace neuroshard::platform::detail
