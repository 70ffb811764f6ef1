// Shared by the files of the POSIX file environment. Private to core/storage.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/storage/file_env.h"

namespace neuroshard::storage::detail {

// One read() or write() moves at most this much: Linux stops at 2 GiB − 4 KiB, macOS refuses more than
// INT_MAX.
inline constexpr std::size_t max_transfer = std::size_t{1} << 30;

// code: an errno. "cannot {what} {path}: why; what to do".
Error posix_error(int code, std::string_view what, const std::string& path);

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

// -1 and errno on failure; not interrupted by signals, closed by exec().
int open_retrying(const std::string& path, int flags, mode_t mode = 0);
// 0, or -1 and errno. Data and metadata are on the disk.
int sync_descriptor(int fd);
// Writes all of it at the descriptor's position; 0 or an errno.
int write_fully(int fd, ByteSpan bytes);
// Takes the room for a file of so many bytes before the first of them is written; 0 or an errno. 0 also where
// the file system can't: then writing finds out.
int reserve_room(int fd, std::uint64_t bytes);

// A file that is written past the page cache where the file system can, from a buffer of its own; fd was
// opened for writing and is empty. Exhausted without memory for the buffer.
Expected<std::unique_ptr<WritableFile>> make_direct_file(Descriptor fd, std::string path);

}  // namespace neuroshard::storage::detail
