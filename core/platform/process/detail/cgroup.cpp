#include "core/platform/process/detail/cgroup.h"

namespace neuroshard::platform::detail {
namespace {

// "/a/b" below `root`: root/a/b, root/a, root.
std::vector<std::string> with_ancestors(const std::string& root, std::string_view path) {
  std::vector<std::string> folders;
  while (!path.empty() && path != "/") {
    folders.push_back(root + std::string(path));
    path = path.substr(0, path.rfind('/'));
  }
  folders.push_back(root);
  return folders;
}

bool lists_controller(std::string_view controllers, std::string_view wanted) {
  std::size_t at = 0;
  while (at <= controllers.size()) {
    const std::size_t end = std::min(controllers.find(',', at), controllers.size());
    if (controllers.substr(at, end - at) == wanted) return true;
    at = end + 1;
  }
  return false;
}

}  // namespace

CgroupFolders cgroup_folders(std::string_view proc_cgroup, const std::string& mount) {
  CgroupFolders folders;
  std::size_t at = 0;
  while (at < proc_cgroup.size()) {
    const std::size_t end = std::min(proc_cgroup.find('\n', at), proc_cgroup.size());
    const std::string_view line = proc_cgroup.substr(at, end - at);  // hierarchy:controllers:path
    at = end + 1;
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string_view path = line.substr(second + 1);
    if (controllers.empty()) {
      folders.v2 = with_ancestors(mount, path);
      // Beside v1 controllers, systemd mounts the unified hierarchy one level deeper.
      for (std::string& folder : with_ancestors(mount + "/unified", path))
        folders.v2.push_back(std::move(folder));
    }
    if (lists_controller(controllers, "memory")) folders.v1_memory = with_ancestors(mount + "/memory", path);
    if (lists_controller(controllers, "cpu")) {
      folders.v1_cpu = with_ancestors(mount + "/" + std::string(controllers), path);
      for (std::string& folder : with_ancestors(mount + "/cpu", path))
        folders.v1_cpu.push_back(std::move(folder));
    }
  }
  return folders;
}

}  // namespace neuroshard::platform::detail
