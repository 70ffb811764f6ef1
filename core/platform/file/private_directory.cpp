#include "core/platform/file/private_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace neuroshard::platform {
namespace {

constexpr mode_t others = S_IRWXG | S_IRWXO;

Error failed(const std::string& path, const char* what, int reason) {
  const ErrorCode code = reason == ENOENT                                         ? ErrorCode::NotFound
                         : reason == EACCES || reason == EPERM || reason == ELOOP ? ErrorCode::Denied
                                                                                  : ErrorCode::Io;
  return make_error(code, fmt::format("can't {} {}: {}", what, path, std::strerror(reason)));
}

}  // namespace

Expected<void> make_private_directory(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  std::error_code ignored;  // mkdir says what is wrong
  if (!parent.empty()) std::filesystem::create_directories(parent, ignored);
  if (mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST) return failed(path, "create the folder", errno);
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return failed(path, "inspect", errno);
  if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & others) != 0) {
    return make_error(
        ErrorCode::Denied,
        fmt::format("{} must be a folder of this user with mode 0700: remove it, or set another "
                    "place with XDG_RUNTIME_DIR",
                    path));
  }
  return {};
}

Expected<std::string> read_private_file(const std::string& path, std::size_t limit) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0) return failed(path, "open", errno);
  struct stat status {};
  const auto checked = [&]() -> Expected<void> {
    if (fstat(descriptor, &status) != 0) return failed(path, "inspect", errno);
    if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & others) != 0) {
      return make_error(
          ErrorCode::Denied,
          fmt::format("{} is not trusted: it must be a file of this user with mode 0600", path));
    }
    if (static_cast<std::size_t>(status.st_size) > limit) {
      return make_error(ErrorCode::Exhausted,
                        fmt::format("{} has {} bytes; at most {} are read", path, status.st_size, limit));
    }
    return {};
  }();
  if (!checked.ok()) {
    close(descriptor);
    return checked.error();
  }
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    const ssize_t got = read(descriptor, text.data() + have, text.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  close(descriptor);
  text.resize(have);
  return text;
}

}  // namespace neuroshard::platform
