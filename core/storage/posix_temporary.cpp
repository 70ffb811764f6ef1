#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "core/storage/detail/posix_temporary.h"

namespace neuroshard::storage::detail {
namespace {

constexpr int attempts = 16;
constexpr std::string_view mark = ".tmp-";
constexpr std::size_t random_bytes = 8;

bool is_temporary(std::string_view name) {
  constexpr std::size_t tail = mark.size() + 2 * random_bytes;
  if (name.size() <= tail) return false;
  name.remove_prefix(name.size() - tail);
  return name.substr(0, mark.size()) == mark &&
         name.find_first_not_of("0123456789abcdef", mark.size()) == std::string_view::npos;
}

// True: nobody removed the file meanwhile, and from now on nobody does. Without locks in this file system
// (some network disks), nobody removes it either.
bool hold(int fd) {
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK;
  struct stat info {};
  return ::fstat(fd, &info) == 0 && info.st_nlink > 0;
}

bool remove_leftover(const std::string& path) {
  const Descriptor fd(open_retrying(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  struct stat info {};
  if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0) return false;
  if (!S_ISREG(info.st_mode) || info.st_uid != ::geteuid()) return false;
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return false;
  return ::unlink(path.c_str()) == 0;
}

template <class Iterator>
std::size_t remove_all(const std::string& folder) {
  std::size_t removed = 0;
  std::error_code failed;
  Iterator at(folder, std::filesystem::directory_options::skip_permission_denied, failed);
  while (!failed && at != Iterator()) {
    const std::filesystem::path path = at->path();
    at.increment(failed);
    if (is_temporary(path.filename().string()) && remove_leftover(path.string())) ++removed;
  }
  return removed;
}

}  // namespace

Expected<NewTemporary> create_temporary(const std::string& target, mode_t mode) {
  for (int i = 0; i < attempts; ++i) {
    std::array<std::uint8_t, random_bytes> drawn{};
    if (::getentropy(drawn.data(), drawn.size()) != 0)
      return posix_error(errno, "draw a name for a file beside", target);
    std::string path = fmt::format("{}{}{}", target, mark, to_hex(drawn));
    Descriptor fd(open_retrying(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode));
    if (fd.get() >= 0 && hold(fd.get())) return NewTemporary{std::move(path), std::move(fd)};
    if (fd.get() < 0 && errno != EEXIST) return posix_error(errno, "open for writing", path);
  }
  return posix_error(EEXIST, "make a temporary file beside", target);
}

std::size_t remove_leftovers(const std::string& folder, LeftoverScope scope) {
  return scope == LeftoverScope::Tree ? remove_all<std::filesystem::recursive_directory_iterator>(folder)
                                      : remove_all<std::filesystem::directory_iterator>(folder);
}

}  // namespace neuroshard::storage::detail
