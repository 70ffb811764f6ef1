// The machine's files without waiting for the disk: tests that kill no machine need no fsync, and run in a
// fraction of the time.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/storage/file_env.h"

namespace neuroshard::testing {

class NoSyncFileEnv final : public storage::FileEnv {
 public:
  Expected<std::unique_ptr<storage::ReadableFile>> open_read(const std::string& path) override {
    return posix_->open_read(path);
  }
  Expected<std::unique_ptr<storage::WritableFile>> open_write(const std::string& path,
                                                              bool world_readable) override {
    return wrap(posix_->open_write(path, world_readable));
  }
  Expected<std::unique_ptr<storage::WritableFile>> open_append(const std::string& path) override {
    return wrap(posix_->open_append(path));
  }
  std::size_t remove_leftovers(const std::string& folder, storage::LeftoverScope scope) override {
    return posix_->remove_leftovers(folder, scope);
  }
  Expected<void> rename(const std::string& from, const std::string& to) override {
    return posix_->rename(from, to);
  }
  Expected<void> remove_file(const std::string& path) override { return posix_->remove_file(path); }
  Expected<void> remove_tree(const std::string& path) override { return posix_->remove_tree(path); }
  Expected<void> create_directories(const std::string& path) override {
    return posix_->create_directories(path);
  }
  Expected<void> sync_directory(const std::string&) override { return {}; }
  Expected<std::vector<storage::DirectoryEntry>> list(const std::string& path) override {
    return posix_->list(path);
  }
  bool exists(const std::string& path) override { return posix_->exists(path); }
  Expected<bool> has_name(const std::string& path) override { return posix_->has_name(path); }
  Expected<std::uint64_t> free_bytes(const std::string& path) override { return posix_->free_bytes(path); }

 private:
  class File final : public storage::WritableFile {
   public:
    explicit File(std::unique_ptr<storage::WritableFile> inner) : inner_(std::move(inner)) {}
    Expected<void> append(ByteSpan bytes) override { return inner_->append(bytes); }
    Expected<void> sync() override { return {}; }
    Expected<void> close() override { return inner_->close(); }

   private:
    std::unique_ptr<storage::WritableFile> inner_;
  };
  static Expected<std::unique_ptr<storage::WritableFile>> wrap(
      Expected<std::unique_ptr<storage::WritableFile>> file) {
    if (!file.ok()) return file;
    return std::unique_ptr<storage::WritableFile>(std::make_unique<File>(std::move(*file)));
  }

  std::unique_ptr<storage::FileEnv> posix_ = storage::make_posix_file_env();
};

}  // namespace neuroshard::testing
