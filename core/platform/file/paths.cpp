#include "core/platform/file/paths.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#if defined(__APPLE__)
#include <mach-o/dyld.h>
#endif

namespace neuroshard::platform {
namespace {

// XDG: a relative path in such a variable is ignored.
bool absolute(const std::string& path) {
  return !path.empty() && path.front() == '/';
}

std::string home_directory(const Environment& environment) {
  const std::string home = environment("HOME");
  if (absolute(home)) return home;
  const passwd* entry =
      getpwuid(getuid());  // NOLINT(concurrency-mt-unsafe): before any thread, and only without HOME
  return entry != nullptr && entry->pw_dir != nullptr ? entry->pw_dir : "";
}

}  // namespace

Environment process_environment() {
  return [](const char* name) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody of ours calls setenv
    return std::string(value == nullptr ? "" : value);
  };
}

Expected<std::string> default_data_directory(const Environment& environment) {
#if defined(_WIN32)
  const std::string local = environment("LOCALAPPDATA");
  if (!local.empty()) return local + "\\NeuroShard";
#else
  const std::string data_home = environment("XDG_DATA_HOME");
  if (absolute(data_home)) return data_home + "/neuroshard";
  const std::string home = home_directory(environment);
#if defined(__APPLE__)
  if (absolute(home)) return home + "/Library/Application Support/NeuroShard";
#else
  if (absolute(home)) return home + "/.local/share/neuroshard";
#endif
#endif
  return make_error(ErrorCode::NotFound,
                    "this user has no home directory: set a data directory with --data-dir");
}

std::string runtime_directory(const Environment& environment) {
  const std::string runtime = environment("XDG_RUNTIME_DIR");
  if (absolute(runtime)) return runtime + "/neuroshard";
  std::string temporary = environment("TMPDIR");
  if (!absolute(temporary)) temporary = "/tmp";
  return temporary + "/neuroshard-" + std::to_string(getuid());
}

Expected<std::string> executable_path() {
  std::error_code failed;
#if defined(__APPLE__)
  char buffer[4096];
  std::uint32_t size = sizeof(buffer);
  if (_NSGetExecutablePath(buffer, &size) != 0) buffer[0] = '\0';
  const std::filesystem::path path = std::filesystem::canonical(buffer, failed);
#else
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", failed);
#endif
  if (failed) {
    return make_error(ErrorCode::Unavailable,
                      "the system does not report the path of this program (is /proc mounted?)");
  }
  return path.string();
}

}  // namespace neuroshard::platform
