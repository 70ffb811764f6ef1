#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/storage/file_env.h"

namespace neuroshard::storage {
namespace {

// One read() or write() moves at most this much: Linux stops at 2 GiB − 4 KiB, macOS refuses more than
// INT_MAX.
constexpr std::size_t max_transfer = std::size_t{1} << 30;

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

// An open descriptor; closes it.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

int open_retrying(const std::string& path, int flags, mode_t mode = 0) {
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

class PosixWritableFile final : public WritableFile {
 public:
  PosixWritableFile(Descriptor fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  Expected<void> append(ByteSpan bytes) override {
    while (!bytes.empty()) {
      const ssize_t wrote = ::write(fd_.get(), bytes.data(), std::min(bytes.size(), max_transfer));
      if (wrote < 0) {
        if (errno == EINTR) continue;
        return posix_error(errno, "write", path_);
      }
      bytes = bytes.subspan(static_cast<std::size_t>(wrote));
    }
    return {};
  }

  Expected<void> sync() override {
    if (sync_descriptor(fd_.get()) != 0) return posix_error(errno, "bring to the disk", path_);
    return {};
  }

  Expected<void> close() override {
    // Not retried on EINTR: the descriptor is gone either way.
    if (::close(fd_.release()) != 0 && errno != EINTR) return posix_error(errno, "close", path_);
    return {};
  }

 private:
  Descriptor fd_;
  std::string path_;
};

class PosixReadableFile final : public ReadableFile {
 public:
  PosixReadableFile(Descriptor fd, std::string path, std::uint64_t size)
      : fd_(std::move(fd)), path_(std::move(path)), size_(size) {}

  std::uint64_t size() const override { return size_; }

  Expected<void> read_at(std::uint64_t offset, MutableByteSpan target) override {
    if (offset > size_ || target.size() > size_ - offset) return ends_early();
    while (!target.empty()) {
      const ssize_t got = ::pread(fd_.get(), target.data(), std::min(target.size(), max_transfer),
                                  static_cast<off_t>(offset));
      if (got < 0) {
        if (errno == EINTR) continue;
        return posix_error(errno, "read", path_);
      }
      if (got == 0) return ends_early();
      offset += static_cast<std::uint64_t>(got);
      target = target.subspan(static_cast<std::size_t>(got));
    }
    return {};
  }

 private:
  Error ends_early() const {
    return make_error(ErrorCode::Corrupt,
                      fmt::format("{} ends early: it was cut off or changed meanwhile", path_));
  }

  Descriptor fd_;
  std::string path_;
  std::uint64_t size_;
};

class PosixFileEnv final : public FileEnv {
 public:
  Expected<std::unique_ptr<ReadableFile>> open_read(const std::string& path) override {
    // O_NONBLOCK: opening a pipe that somebody put here must not hang; regular files do not care.
    Descriptor fd(open_retrying(path, O_RDONLY | O_NONBLOCK));
    if (fd.get() < 0) return posix_error(errno, "open", path);
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0) return posix_error(errno, "examine", path);
    if (S_ISDIR(info.st_mode)) return posix_error(EISDIR, "open", path);
    if (!S_ISREG(info.st_mode)) {
      return make_error(ErrorCode::InvalidArgument, fmt::format("{} is not a regular file", path));
    }
    return std::unique_ptr<ReadableFile>(
        std::make_unique<PosixReadableFile>(std::move(fd), path, static_cast<std::uint64_t>(info.st_size)));
  }

  Expected<std::unique_ptr<WritableFile>> open_write(const std::string& path, bool world_readable) override {
    return open_for_writing(path, O_TRUNC, world_readable ? 0644 : 0600);
  }

  Expected<std::unique_ptr<WritableFile>> open_append(const std::string& path) override {
    return open_for_writing(path, O_APPEND, 0600);
  }

  Expected<void> rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) {
      return posix_error(errno, fmt::format("rename {} to", from), to);
    }
    return {};
  }

  Expected<void> remove_file(const std::string& path) override {
    if (::unlink(path.c_str()) != 0) return posix_error(errno, "remove", path);
    return {};
  }

  Expected<void> remove_tree(const std::string& path) override {
    // Does not follow symbolic links: a link is removed, never what it points to.
    std::error_code code;
    std::filesystem::remove_all(path, code);
    if (code && code.value() != ENOENT) return posix_error(code.value(), "remove", path);
    return {};
  }

  Expected<void> create_directories(const std::string& path) override {
    for (std::size_t end = 1; end <= path.size(); ++end) {
      if (end != path.size() && path[end] != '/') continue;
      const std::string part = path.substr(0, end);
      if (::mkdir(part.c_str(), 0700) == 0) continue;
      const int code = errno;
      struct stat info {};
      if (::stat(part.c_str(), &info) == 0) {
        if (S_ISDIR(info.st_mode)) continue;
        return make_error(ErrorCode::AlreadyExists,
                          fmt::format("cannot create the folder {}: {} is a file", path, part));
      }
      return posix_error(code, "create the folder", part);
    }
    return {};
  }

  Expected<void> sync_directory(const std::string& path) override {
    Descriptor fd(open_retrying(path, O_RDONLY | O_DIRECTORY));
    if (fd.get() < 0) return posix_error(errno, "open the folder", path);
    if (sync_descriptor(fd.get()) != 0) {
      // Some network file systems cannot sync a folder and order renames themselves.
      if (errno == EINVAL || errno == ENOTSUP) return {};
      return posix_error(errno, "bring to the disk the folder", path);
    }
    return {};
  }

  Expected<std::vector<DirectoryEntry>> list(const std::string& path) override {
    DIR* raw = ::opendir(path.c_str());
    if (raw == nullptr) return posix_error(errno, "list the folder", path);
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(raw, ::closedir);
    std::vector<DirectoryEntry> entries;
    for (;;) {
      errno = 0;
      const dirent* item = ::readdir(folder.get());
      if (item == nullptr) {
        if (errno != 0) return posix_error(errno, "list the folder", path);
        break;
      }
      const std::string name = item->d_name;
      if (name == "." || name == "..") continue;
      struct stat info {};
      if (::fstatat(::dirfd(folder.get()), name.c_str(), &info, 0) != 0) {
        if (errno == ENOENT) continue;            // removed meanwhile, or a link to nothing
        if (errno == ELOOP || errno == EACCES) {  // one bad link must not hide the rest of the folder
          entries.push_back({name, false, 0});
          continue;
        }
        return posix_error(errno, "examine", path + "/" + name);
      }
      entries.push_back({name, S_ISDIR(info.st_mode),
                         S_ISREG(info.st_mode) ? static_cast<std::uint64_t>(info.st_size) : 0});
    }
    std::sort(entries.begin(), entries.end(),
              [](const DirectoryEntry& a, const DirectoryEntry& b) { return a.name < b.name; });
    return entries;
  }

  bool exists(const std::string& path) override {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0;
  }

  Expected<std::uint64_t> free_bytes(const std::string& path) override {
    struct statvfs info {};
    if (::statvfs(path.c_str(), &info) != 0) return posix_error(errno, "measure the free space at", path);
    return static_cast<std::uint64_t>(info.f_bavail) * static_cast<std::uint64_t>(info.f_frsize);
  }

 private:
  static Expected<std::unique_ptr<WritableFile>> open_for_writing(const std::string& path, int flags,
                                                                  mode_t mode) {
    Descriptor fd(open_retrying(path, O_WRONLY | O_CREAT | flags, mode));
    if (fd.get() < 0) return posix_error(errno, "open for writing", path);
    return std::unique_ptr<WritableFile>(std::make_unique<PosixWritableFile>(std::move(fd), path));
  }
};

}  // namespace

std::unique_ptr<FileEnv> make_posix_file_env() {
  return std::make_unique<PosixFileEnv>();
}

}  // namespace neuroshard::storage
