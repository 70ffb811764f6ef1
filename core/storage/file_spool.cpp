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

// Bytes in use by all items.
using Used = std::shared_ptr<std::atomic<std::uint64_t>>;

// Its share of the memory, until it is destroyed.
class Share {
 public:
  Share(Used used, std::uint64_t bytes) : used_(std::move(used)), bytes_(bytes) {}
  Share(Share&& other) noexcept : used_(std::move(other.used_)), bytes_(std::exchange(other.bytes_, 0)) {}
  Share& operator=(Share&&) = delete;
  ~Share() {
    if (used_) *used_ -= bytes_;
  }
  // False: with it, more than `most` would be in use.
  static bool take(std::atomic<std::uint64_t>& used, std::uint64_t bytes, std::uint64_t most) {
    std::uint64_t now = used;
    while (bytes <= most && now <= most - bytes)
      if (used.compare_exchange_weak(now, now + bytes)) return true;
    return false;
  }

 private:
  Used used_;
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

// Its bytes count for the budget, if there is one, until it is destroyed.
class ScratchFile {
 public:
  ScratchFile(Descriptor fd, std::string folder) : fd_(std::move(fd)), folder_(std::move(folder)) {}
  ~ScratchFile() {
    if (budget_) budget_->give_back(bytes_, bytes_ - std::min(written_.load(), bytes_));
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  void count(std::shared_ptr<DiskBudget> budget, std::uint64_t bytes) {
    budget_ = std::move(budget);
    bytes_ = bytes;
    if (budget_) budget_->hold(bytes_);
  }
  // Several threads may write at once.
  void wrote(std::uint64_t bytes) const {
    const std::uint64_t before = written_.fetch_add(bytes);
    if (budget_) budget_->wrote_held(bytes, std::min(before + bytes, bytes_) - std::min(before, bytes_));
  }
  int fd() const { return fd_.get(); }
  Error error(int code, std::string_view what) const {
    return posix_error(code, what, "a temporary file in " + folder_);
  }

 private:
  const Descriptor fd_;
  const std::string folder_;
  std::shared_ptr<DiskBudget> budget_;
  std::uint64_t bytes_ = 0;
  mutable std::atomic<std::uint64_t> written_{0};  // some of them more than once
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
      file_->wrote(static_cast<std::uint64_t>(wrote));
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
      : options_(std::move(options)), used_(std::make_shared<std::atomic<std::uint64_t>>(0)) {}

  Expected<std::unique_ptr<SpoolItem>> create(std::uint64_t bytes) override {
    if (Share::take(*used_, bytes, options_.memory_bytes)) return in_memory_of(bytes);
    auto item = on_disk(bytes);
    if (item.ok() || !options_.spare_memory) return item;
    const std::uint64_t most = options_.memory_bytes + options_.spare_memory();
    return Share::take(*used_, bytes, most) ? in_memory_of(bytes) : std::move(item);
  }

 private:
  // Of a share that is taken.
  Expected<std::unique_ptr<SpoolItem>> in_memory_of(std::uint64_t bytes) {
    Share share(used_, bytes);
    NS_ASSIGN_OR_RETURN(auto item, memory_.create(bytes));
    return std::unique_ptr<SpoolItem>(std::make_unique<MemoryItem>(std::move(item), std::move(share)));
  }

  Expected<std::unique_ptr<SpoolItem>> on_disk(std::uint64_t bytes) const {
    if (options_.budget) NS_RETURN_IF_ERROR(options_.budget->check(bytes));
    NS_ASSIGN_OR_RETURN(Descriptor fd, open());
    auto file = std::make_shared<ScratchFile>(std::move(fd), options_.folder);
    if (const int code = detail::reserve_room(file->fd(), bytes); code != 0)
      return file->error(code, "make room in");
    file->count(options_.budget, bytes);
    return std::unique_ptr<SpoolItem>(std::make_unique<ScratchItem>(std::move(file)));
  }

  Expected<Descriptor> open() const {
    if (::mkdir(options_.folder.c_str(), 0700) != 0 && errno != EEXIST)
      return posix_error(errno, "create the folder", options_.folder);
#ifdef O_TMPFILE
    Descriptor nameless(detail::open_retrying(options_.folder, O_TMPFILE | O_RDWR, 0600));
    if (nameless.get() >= 0) return nameless;
#endif
    // Not every file system has files without a name.
    std::string name = options_.folder + "/XXXXXX";
    Descriptor named(::mkostemp(name.data(), O_CLOEXEC));
    if (named.get() < 0) return posix_error(errno, "create a file in", options_.folder);
    if (::unlink(name.c_str()) != 0) return posix_error(errno, "remove", name);
    return named;
  }

  const FileSpoolOptions options_;
  const Used used_;  // in memory
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
