#include "core/storage/detail/posix_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace neuroshard::storage::detail {

Error posix_error(int code, std::string_view what, const std::string& path) {
  const auto say = [&](ErrorCode kind, std::string_view why) {
    return make_error(kind, fmt::format("cannot {} {}: {}", what, path, why));
  };
  switch (code) {
    case ENOENT:
    case ENOTDIR: return say(ErrorCode::NotFound, "it does not exist");
    case EROFS:
      return say(ErrorCode::Denied,
                 "the disk is read-only; make it writable or choose another data directory");
    case EACCES:
    case EPERM: return say(ErrorCode::Denied, "no permission; check who owns it and its access rights");
    case ELOOP:
      return say(ErrorCode::Denied, "it is a symbolic link, which is not followed; name the file itself");
    case ENOSPC:
      return say(ErrorCode::Exhausted, "the disk is full; free some space or choose another data directory");
    case EDQUOT:
      return say(ErrorCode::Exhausted, "the disk quota is used up; free some space or raise the quota");
    case EFBIG:
      return say(ErrorCode::Exhausted, "the file would be larger than this file system or limit allows");
    case EMFILE:
    case ENFILE: return say(ErrorCode::Exhausted, "too many files are open; raise the limit (ulimit -n)");
    case EEXIST:
    case ENOTEMPTY: return say(ErrorCode::AlreadyExists, "something else is already there");
    case EISDIR: return say(ErrorCode::InvalidArgument, "it is a folder");
    case ENAMETOOLONG: return say(ErrorCode::InvalidArgument, "the path is too long");
    default:
      return say(ErrorCode::Io, fmt::format("{}; check the disk", std::generic_category().message(code)));
  }
}

int open_retrying(const std::string& path, int flags, mode_t mode) {
  int fd;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

int sync_descriptor(int fd) {
  int result;
#ifdef __APPLE__
  // fsync on macOS leaves data in the drive's cache; F_FULLFSYNC does not, where the file system has it.
  result = ::fcntl(fd, F_FULLFSYNC);
  if (result == 0) return 0;
#endif
  do {
    result = ::fsync(fd);
  } while (result != 0 && errno == EINTR);
  return result;
}

int write_fully(int fd, ByteSpan bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd, bytes.data(), std::min(bytes.size(), max_transfer));
    if (wrote < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(wrote));
  }
  return 0;
}

int reserve_room([[maybe_unused]] int fd, [[maybe_unused]] std::uint64_t bytes) {
#ifdef __linux__
  // Not posix_fallocate: where the file system can't, that writes zeros instead. The size stays what was
  // written, so that a file that was cut off looks cut off.
  if (bytes == 0) return 0;
  int result;
  do {
    result = ::fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
  if (result != 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)) return errno;
#endif
  return 0;
}

}  // namespace neuroshard::storage::detail
