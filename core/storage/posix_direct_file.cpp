// Writing past the page cache: the disk fetches the bytes from this file's own buffer. Beside a program that
// computes on every processor that is what counts: the kernel neither copies nor finds pages for them, and
// nothing useful is pushed out of its cache.
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "core/storage/detail/posix_file.h"

namespace neuroshard::storage::detail {
namespace {

// Of memory, offset and length: what the strictest disks and file systems ask for.
constexpr std::size_t alignment = 4096;
// Large enough for a disk to be busy, small enough to be in the cache when it is copied here.
constexpr std::size_t buffer_bytes = large_file_buffer;

// macOS names it otherwise; elsewhere 0: then this is a file with a buffer.
int set_direct([[maybe_unused]] int fd, [[maybe_unused]] bool on) {
#if defined(O_DIRECT)
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) return -1;
  return ::fcntl(fd, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT);
#elif defined(F_NOCACHE)
  return ::fcntl(fd, F_NOCACHE, on ? 1 : 0);
#else
  return -1;
#endif
}

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

class DirectFile final : public WritableFile {
 public:
  DirectFile(Descriptor fd, std::string path, std::uint8_t* buffer)
      : fd_(std::move(fd)), path_(std::move(path)), buffer_(buffer) {
    direct_ = set_direct(fd_.get(), true) == 0;
  }

  Expected<void> append(ByteSpan bytes) override {
    while (!bytes.empty()) {
      const std::size_t now = std::min(bytes.size(), buffer_bytes - filled_);
      std::memcpy(buffer_.get() + filled_, bytes.data(), now);
      filled_ += now;
      bytes = bytes.subspan(now);
      if (filled_ == buffer_bytes) NS_RETURN_IF_ERROR(flush());
    }
    return {};
  }

  Expected<void> sync() override {
    NS_RETURN_IF_ERROR(flush());
    if (sync_descriptor(fd_.get()) != 0) return posix_error(errno, "flush", path_);
    return {};
  }

  Expected<void> close() override {
    NS_RETURN_IF_ERROR(flush());
    if (::close(fd_.release()) != 0 && errno != EINTR) return posix_error(errno, "close", path_);
    return {};
  }

 private:
  Expected<void> flush() {
    // A rest that fills no block, and what follows it, goes through the cache.
    if (direct_ && filled_ % alignment != 0) leave_direct();
    int code = write_fully(fd_.get(), {buffer_.get(), filled_});
    if (code == EINVAL && direct_ && written_ == 0) {
      // Some file systems take the flag and refuse the first write.
      leave_direct();
      code = write_fully(fd_.get(), {buffer_.get(), filled_});
    }
    if (code != 0) return posix_error(code, "write", path_);
    written_ += filled_;
    filled_ = 0;
    return {};
  }

  void leave_direct() {
    direct_ = false;
    static_cast<void>(set_direct(fd_.get(), false));
  }

  Descriptor fd_;
  std::string path_;
  std::unique_ptr<std::uint8_t, Free> buffer_;
  std::size_t filled_ = 0;
  std::uint64_t written_ = 0;
  bool direct_ = false;
};

}  // namespace

Expected<std::unique_ptr<WritableFile>> make_direct_file(Descriptor fd, std::string path) {
  auto* const buffer = static_cast<std::uint8_t*>(std::aligned_alloc(alignment, buffer_bytes));
  if (buffer == nullptr) {
    return make_error(ErrorCode::Exhausted, "not enough memory for a buffer to write " + path + " from");
  }
  return std::unique_ptr<WritableFile>(std::make_unique<DirectFile>(std::move(fd), std::move(path), buffer));
}

}  // namespace neuroshard::storage::detail
