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

#include "core/storage/detail/posix_file.h"
#include "core/storage/detail/posix_temporary.h"
#include "core/storage/file_env.h"

namespace neuroshard::storage {
namespace {

using detail::Descriptor;
using detail::max_transfer;
using detail::open_retrying;
using detail::posix_error;
using detail::sync_descriptor;

class PosixWritableFile final : public WritableFile {
 public:
  PosixWritableFile(Descriptor fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  Expected<void> append(ByteSpan bytes) override {
    const int code = detail::write_fully(fd_.get(), bytes);
    if (code != 0) return posix_error(code, "write", path_);
    return {};
  }

  Expected<void> sync() override {
    if (sync_descriptor(fd_.get()) != 0) return posix_error(errno, "flush", path_);
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

// Marked as in use until it is destroyed, also between close() and the rename.
class PosixTemporaryFile final : public WritableFile {
 public:
  PosixTemporaryFile(std::unique_ptr<WritableFile> file, Descriptor lock)
      : file_(std::move(file)), lock_(std::move(lock)) {}
  Expected<void> append(ByteSpan bytes) override { return file_->append(bytes); }
  Expected<void> sync() override { return file_->sync(); }
  Expected<void> close() override { return file_->close(); }

 private:
  std::unique_ptr<WritableFile> file_;
  Descriptor lock_;
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

  void expect_read([[maybe_unused]] std::uint64_t offset,
                   [[maybe_unused]] std::uint64_t bytes) const override {
#if defined(POSIX_FADV_WILLNEED)
    if (offset >= size_) return;
    static_cast<void>(::posix_fadvise(fd_.get(), static_cast<off_t>(offset),
                                      static_cast<off_t>(std::min(bytes, size_ - offset)),
                                      POSIX_FADV_WILLNEED));
#endif
  }

 private:
  Error ends_early() const {
    return make_error(ErrorCode::Corrupt,
                      fmt::format("{} ends early: it was truncated or changed meanwhile", path_));
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

  Expected<std::unique_ptr<WritableFile>> open_write_large(const std::string& path,
                                                           const LargeFile& file) override {
    Descriptor fd(
        open_retrying(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, file.world_readable ? 0644 : 0600));
    if (fd.get() < 0) return posix_error(errno, "open for writing", path);
    return large_file(std::move(fd), path, file);
  }

  Expected<TemporaryFile> open_temporary(const std::string& target, const LargeFile& file) override {
    NS_ASSIGN_OR_RETURN(detail::NewTemporary fresh,
                        detail::create_temporary(target, file.world_readable ? 0644 : 0600));
    Descriptor lock(::fcntl(fresh.fd.get(), F_DUPFD_CLOEXEC, 0));  // shares the lock of fresh.fd
    auto opened = large_file(std::move(fresh.fd), fresh.path, file);
    if (!opened.ok()) {
      static_cast<void>(::unlink(fresh.path.c_str()));
      return std::move(opened).error();
    }
    return TemporaryFile{std::move(fresh.path),
                         std::make_unique<PosixTemporaryFile>(std::move(*opened), std::move(lock))};
  }

  std::size_t remove_leftovers(const std::string& folder, LeftoverScope scope) override {
    return detail::remove_leftovers(folder, scope);
  }

  Expected<std::unique_ptr<WritableFile>> open_existing(const std::string& path) override {
    Descriptor fd(open_retrying(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK));
    if (fd.get() < 0) return posix_error(errno, "overwrite", path);
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0) return posix_error(errno, "examine", path);
    if (!S_ISREG(info.st_mode) || info.st_nlink != 1) {
      return make_error(
          ErrorCode::Denied,
          fmt::format("cannot overwrite {}: it is no regular file, or has a second name", path));
    }
    return std::unique_ptr<WritableFile>(std::make_unique<PosixWritableFile>(std::move(fd), path));
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

  Expected<void> create_new_directory(const std::string& path) override {
    NS_RETURN_IF_ERROR(create_directories(parent_of(path)));
    if (::mkdir(path.c_str(), 0700) == 0) return {};
    if (errno == EEXIST)
      return make_error(ErrorCode::AlreadyExists, path + " already exists; choose a new folder");
    return posix_error(errno, "create the folder", path);
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
      return posix_error(errno, "flush the folder", path);
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
      int failed = ::fstatat(::dirfd(folder.get()), name.c_str(), &info, AT_SYMLINK_NOFOLLOW);
      const bool is_link = failed == 0 && S_ISLNK(info.st_mode);
      if (is_link) failed = ::fstatat(::dirfd(folder.get()), name.c_str(), &info, 0);
      if (failed != 0) {
        if (errno == ENOENT) continue;            // removed meanwhile, or a link to nothing
        if (errno == ELOOP || errno == EACCES) {  // one bad link must not hide the rest of the folder
          entries.push_back({name, false, 0, is_link});
          continue;
        }
        return posix_error(errno, "examine", path + "/" + name);
      }
      entries.push_back({name, S_ISDIR(info.st_mode),
                         S_ISREG(info.st_mode) ? static_cast<std::uint64_t>(info.st_size) : 0, is_link});
    }
    std::sort(entries.begin(), entries.end(),
              [](const DirectoryEntry& a, const DirectoryEntry& b) { return a.name < b.name; });
    return entries;
  }

  bool exists(const std::string& path) override {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0;
  }

  Expected<bool> has_name(const std::string& path) override {
    struct stat info {};
    if (::lstat(path.c_str(), &info) == 0) return true;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return posix_error(errno, "examine", path);
  }

  Expected<std::uint64_t> free_bytes(const std::string& path) override {
    struct statvfs info {};
    if (::statvfs(path.c_str(), &info) != 0) return posix_error(errno, "measure the free space at", path);
    return static_cast<std::uint64_t>(info.f_bavail) * static_cast<std::uint64_t>(info.f_frsize);
  }

 private:
  static Expected<std::unique_ptr<WritableFile>> large_file(Descriptor fd, const std::string& path,
                                                            const LargeFile& file) {
    if (const int code = detail::reserve_room(fd.get(), file.bytes); code != 0) {
      return posix_error(code, "write", path);
    }
    if (file.read_soon) {
      return std::unique_ptr<WritableFile>(std::make_unique<PosixWritableFile>(std::move(fd), path));
    }
    return detail::make_direct_file(std::move(fd), path);
  }

  static Expected<std::unique_ptr<WritableFile>> open_for_writing(const std::string& path, int flags,
                                                                  mode_t mode) {
    Descriptor fd(open_retrying(path, O_WRONLY | O_CREAT | O_NOFOLLOW | flags, mode));
    if (fd.get() < 0) return posix_error(errno, "open for writing", path);
    return std::unique_ptr<WritableFile>(std::make_unique<PosixWritableFile>(std::move(fd), path));
  }
};

}  // namespace

std::unique_ptr<FileEnv> make_posix_file_env() {
  return std::make_unique<PosixFileEnv>();
}

}  // namespace neuroshard::storage
