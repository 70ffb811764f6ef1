#include "core/storage/counted_files.h"

#include <utility>

namespace neuroshard::storage {
namespace {

class CountedFile final : public WritableFile {
 public:
  CountedFile(std::unique_ptr<WritableFile> file, std::shared_ptr<DiskBudget> budget)
      : file_(std::move(file)), budget_(std::move(budget)) {}
  Expected<void> append(ByteSpan bytes) override {
    budget_->wrote(bytes.size());
    return file_->append(bytes);
  }
  Expected<void> sync() override { return file_->sync(); }
  Expected<void> close() override { return file_->close(); }

 private:
  const std::unique_ptr<WritableFile> file_;
  const std::shared_ptr<DiskBudget> budget_;
};

class CountedFiles final : public FileEnv {
 public:
  CountedFiles(FileEnv& files, std::shared_ptr<DiskBudget> budget)
      : files_(files), budget_(std::move(budget)) {}

  Expected<std::unique_ptr<ReadableFile>> open_read(const std::string& path) override {
    return files_.open_read(path);
  }
  Expected<std::unique_ptr<WritableFile>> open_write(const std::string& path, bool world_readable) override {
    return counted(files_.open_write(path, world_readable));
  }
  Expected<std::unique_ptr<WritableFile>> open_write_large(const std::string& path,
                                                           const LargeFile& file) override {
    return counted(files_.open_write_large(path, file));
  }
  Expected<std::unique_ptr<WritableFile>> open_append(const std::string& path) override {
    return counted(files_.open_append(path));
  }
  Expected<TemporaryFile> open_temporary(const std::string& target, const LargeFile& file) override {
    NS_ASSIGN_OR_RETURN(TemporaryFile temporary, files_.open_temporary(target, file));
    NS_ASSIGN_OR_RETURN(temporary.file, counted(std::move(temporary.file)));
    return temporary;
  }
  std::size_t remove_leftovers(const std::string& folder, LeftoverScope scope) override {
    return files_.remove_leftovers(folder, scope);
  }
  Expected<std::unique_ptr<WritableFile>> open_existing(const std::string& path) override {
    return counted(files_.open_existing(path));
  }
  Expected<void> rename(const std::string& from, const std::string& to) override {
    return files_.rename(from, to);
  }
  Expected<void> remove_file(const std::string& path) override { return files_.remove_file(path); }
  Expected<void> remove_tree(const std::string& path) override { return files_.remove_tree(path); }
  Expected<void> create_directories(const std::string& path) override {
    return files_.create_directories(path);
  }
  Expected<void> create_new_directory(const std::string& path) override {
    return files_.create_new_directory(path);
  }
  Expected<void> sync_directory(const std::string& path) override { return files_.sync_directory(path); }
  Expected<std::vector<DirectoryEntry>> list(const std::string& path) override { return files_.list(path); }
  bool exists(const std::string& path) override { return files_.exists(path); }
  Expected<bool> has_name(const std::string& path) override { return files_.has_name(path); }
  Expected<std::uint64_t> free_bytes(const std::string& path) override { return files_.free_bytes(path); }

 private:
  Expected<std::unique_ptr<WritableFile>> counted(Expected<std::unique_ptr<WritableFile>> file) {
    if (!file.ok()) return file;
    return std::unique_ptr<WritableFile>(std::make_unique<CountedFile>(std::move(*file), budget_));
  }

  FileEnv& files_;
  const std::shared_ptr<DiskBudget> budget_;
};

}  // namespace

std::unique_ptr<FileEnv> make_counted_files(FileEnv& files, std::shared_ptr<DiskBudget> budget) {
  return std::make_unique<CountedFiles>(files, std::move(budget));
}

}  // namespace neuroshard::storage
