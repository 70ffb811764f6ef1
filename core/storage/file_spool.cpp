#include "core/storage/file_spool.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>

#include "core/storage/detail/posix_file.h"

namespace neuroshard::storage {
namespace {

using detail::Descriptor;
using detail::posix_error;

constexpr std::size_t write_at_once = 1u << 20;

// ---- in memory, as long as there is room

using Room = std::shared_ptr<std::atomic<std::uint64_t>>;

// Its share of the memory, until it is destroyed.
class Share {
 public:
  Share(Room room, std::uint64_t bytes) : room_(std::move(room)), bytes_(bytes) {}
  Share(Share&& other) noexcept : room_(std::move(other.room_)), bytes_(std::exchange(other.bytes_, 0)) {}
  Share& operator=(Share&&) = delete;
  ~Share() {
    if (room_) *room_ += bytes_;
  }
  // False: there is less.
  static bool take(std::atomic<std::uint64_t>& room, std::uint64_t bytes) {
    std::uint64_t left = room;
    while (left >= bytes)
      if (room.compare_exchange_weak(left, left - bytes)) return true;
    return false;
  }

 private:
  Room room_;
  std::uint64_t bytes_;
};

class SharedMemory final : public ByteSource {
 public:
  SharedMemory(ByteSourcePtr bytes, Share share) : bytes_(std::move(bytes)), share_(std::move(share)) {}
  std::uint64_t size() const override { return bytes_->size(); }
  Expected<void> read_at(std::uint64_t offset, MutableByteSpan target) const override {
    return bytes_->read_at(offset, target);
  }
  ByteSpan view() const override { return bytes_->view(); }

 private:
  const ByteSourcePtr bytes_;
  const Share share_;
};

class MemoryItem final : public SpoolItem {
 public:
  MemoryItem(std::unique_ptr<SpoolItem> item, Share share)
      : item_(std::move(item)), share_(std::move(share)) {}
  Expected<void> write_at(std::uint64_t offset, ByteSpan bytes) override {
    return item_->write_at(offset, bytes);
  }
  Expected<ByteSourcePtr> finish(std::uint64_t bytes) override {
    NS_ASSIGN_OR_RETURN(ByteSourcePtr made, item_->finish(bytes));
    return ByteSourcePtr(std::make_shared<const SharedMemory>(std::move(made), std::move(share_)));
  }

 private:
  std::unique_ptr<SpoolItem> item_;
  Share share_;
};

// ---- on the disk

class ScratchFile {
 public:
  ScratchFile(Descriptor fd, std::string folder) : fd_(std::move(fd)), folder_(std::move(folder)) {}
  int fd() const { return fd_.get(); }
  Error error(int code, std::string_view what) const {
    return posix_error(code, what, "a temporary file in " + folder_);
  }

 private:
  const Descriptor fd_;
  const std::string folder_;
};

class ScratchBytes final : public ByteSource {
 public:
  ScratchBytes(std::shared_ptr<const ScratchFile> file, std::uint64_t size)
      : file_(std::move(file)), size_(size) {}
  std::uint64_t size() const override { return size_; }
  Expected<void> read_at(std::uint64_t offset, MutableByteSpan target) const override {
    if (offset > size_ || target.size() > size_ - offset)
      return make_error(ErrorCode::Corrupt, "the bytes end early");
    while (!target.empty()) {
      const ssize_t got = ::pread(file_->fd(), target.data(), std::min(target.size(), detail::max_transfer),
                                  static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return file_->error(got < 0 ? errno : EIO, "read");
      offset += static_cast<std::uint64_t>(got);
      target = target.subspan(static_cast<std::size_t>(got));
    }
    return {};
  }

 private:
  const std::shared_ptr<const ScratchFile> file_;
  const std::uint64_t size_;
};

class ScratchItem final : public SpoolItem {
 public:
  explicit ScratchItem(std::shared_ptr<const ScratchFile> file) : file_(std::move(file)) {}
  Expected<void> write_at(std::uint64_t offset, ByteSpan bytes) override {
    while (!bytes.empty()) {
      const ssize_t wrote = ::pwrite(file_->fd(), bytes.data(), std::min(bytes.size(), detail::max_transfer),
                                     static_cast<off_t>(offset));
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) return file_->error(wrote < 0 ? errno : EIO, "write");
      offset += static_cast<std::uint64_t>(wrote);
      bytes = bytes.subspan(static_cast<std::size_t>(wrote));
    }
    return {};
  }
  Expected<ByteSourcePtr> finish(std::uint64_t bytes) override {
    if (::ftruncate(file_->fd(), static_cast<off_t>(bytes)) != 0) return file_->error(errno, "shorten");
    return ByteSourcePtr(std::make_shared<const ScratchBytes>(std::exchange(file_, nullptr), bytes));
  }

 private:
  std::shared_ptr<const ScratchFile> file_;
};

class FileSpool final : public Spool {
 public:
  explicit FileSpool(FileSpoolOptions options)
      : folder_(std::move(options.folder)),
        room_(std::make_shared<std::atomic<std::uint64_t>>(options.memory_bytes)) {}

  Expected<std::unique_ptr<SpoolItem>> create(std::uint64_t bytes) override {
    if (Share::take(*room_, bytes)) {
      Share share(room_, bytes);
      NS_ASSIGN_OR_RETURN(auto item, memory_.create(bytes));
      return std::unique_ptr<SpoolItem>(std::make_unique<MemoryItem>(std::move(item), std::move(share)));
    }
    NS_ASSIGN_OR_RETURN(Descriptor fd, open());
    auto file = std::make_shared<const ScratchFile>(std::move(fd), folder_);
    if (const int code = detail::reserve_room(file->fd(), bytes); code != 0)
      return file->error(code, "make room in");
    return std::unique_ptr<SpoolItem>(std::make_unique<ScratchItem>(std::move(file)));
  }

 private:
  Expected<Descriptor> open() const {
    if (::mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST)
      return posix_error(errno, "create the folder", folder_);
#ifdef O_TMPFILE
    Descriptor nameless(detail::open_retrying(folder_, O_TMPFILE | O_RDWR, 0600));
    if (nameless.get() >= 0) return nameless;
#endif
    // Not every file system has files without a name.
    std::string name = folder_ + "/XXXXXX";
    Descriptor named(::mkostemp(name.data(), O_CLOEXEC));
    if (named.get() < 0) return posix_error(errno, "create a file in", folder_);
    if (::unlink(name.c_str()) != 0) return posix_error(errno, "remove", name);
    return named;
  }

  const std::string folder_;
  const Room room_;  // left in memory
  MemorySpool memory_;
};

class OpenFile final : public ByteSource {
 public:
  explicit OpenFile(std::unique_ptr<ReadableFile> file) : file_(std::move(file)) {}
  std::uint64_t size() const override { return file_->size(); }
  Expected<void> read_at(std::uint64_t offset, MutableByteSpan target) const override {
    return file_->read_at(offset, target);
  }

 private:
  const std::unique_ptr<ReadableFile> file_;
};

}  // namespace

std::shared_ptr<Spool> make_file_spool(FileSpoolOptions options) {
  return std::make_shared<FileSpool>(std::move(options));
}

Expected<ByteSourcePtr> open_bytes(FileEnv& files, const std::string& path) {
  NS_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, files.open_read(path));
  return ByteSourcePtr(std::make_shared<const OpenFile>(std::move(file)));
}

Expected<void> copy_to_file(FileEnv& files, const std::string& path, const ByteSource& bytes) {
  return replace_file(files, path, [&](WritableFile& file) {
    return read_in_parts(bytes, write_at_once,
                         [&](std::uint64_t, ByteSpan part) { return file.append(part); });
  });
}

}  // namespace neuroshard::storage
