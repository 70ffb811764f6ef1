// Faults over any other file environment: fail the n-th change, fill the disk after k bytes, be read-only, or
// lose the power in the middle of an append. Every append, sync, close, open for writing, rename, removal,
// folder creation and folder sync is one change, counted from 0. Over a MemoryFileEnv, a test walks through
// every instant of a save:
//
//   for (n = 0; ; ++n) { run with faults.stop_at = n; memory.power_cut(kind); check; if (n >=
//   faults.changes()) break; }
//
// Threads: one.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/storage/file_env.h"

namespace neuroshard::testing {

struct Faults {
  std::optional<std::uint64_t> fail_at = {};     // this change fails with Io; later ones work again
  std::optional<std::uint64_t> stop_at = {};     // this change and all later ones fail: the machine is off
  bool tear_at_stop = false;                     // an append at stop_at writes its first half
  std::optional<std::uint64_t> room_bytes = {};  // so many bytes can be appended, then Exhausted
  bool read_only = false;                        // every change is Denied
  std::uint64_t busy_opens = 0;                  // so many times, too many files are open to read another
};

class FaultFileEnv final : public storage::FileEnv {
 public:
  explicit FaultFileEnv(storage::FileEnv& inner, Faults faults = {})
      : inner_(inner), faults_(std::move(faults)) {}

  // Changes asked for so far, failed ones included.
  std::uint64_t changes() const { return changes_; }
  std::uint64_t appended_bytes() const { return appended_; }

  // Paths with this end can't be read: Unavailable, as if they were on another computer, or as `code` says.
  // "" = none.
  void take_away(std::string end, ErrorCode code = ErrorCode::Unavailable) {
    away_ = std::move(end);
    away_code_ = code;
  }

  // Folders listed so far.
  std::uint64_t lists() const { return lists_; }

  // Called before each file that is opened to read.
  void before_read(std::function<void(const std::string& path)> call) { before_read_ = std::move(call); }
  // Called before each rename that works.
  void before_rename(std::function<void(const std::string& to)> call) { before_rename_ = std::move(call); }

  Expected<std::unique_ptr<storage::ReadableFile>> open_read(const std::string& path) override {
    if (before_read_) before_read_(path);
    if (faults_.busy_opens > 0) {
      --faults_.busy_opens;
      return make_error(ErrorCode::Exhausted, "too many files are open");
    }
    if (!away_.empty() && path.ends_with(away_)) return make_error(away_code_, path + " is away");
    return inner_.open_read(path);
  }
  Expected<std::unique_ptr<storage::WritableFile>> open_write(const std::string& path,
                                                              bool world_readable) override {
    NS_RETURN_IF_ERROR(change());
    return wrap(inner_.open_write(path, world_readable));
  }
  Expected<std::unique_ptr<storage::WritableFile>> open_append(const std::string& path) override {
    NS_RETURN_IF_ERROR(change());
    return wrap(inner_.open_append(path));
  }
  Expected<std::unique_ptr<storage::WritableFile>> open_existing(const std::string& path) override {
    NS_RETURN_IF_ERROR(change());
    return wrap(inner_.open_existing(path));
  }
  Expected<void> rename(const std::string& from, const std::string& to) override {
    NS_RETURN_IF_ERROR(change());
    if (before_rename_) before_rename_(to);
    return inner_.rename(from, to);
  }
  Expected<void> remove_file(const std::string& path) override {
    NS_RETURN_IF_ERROR(change());
    return inner_.remove_file(path);
  }
  Expected<void> remove_tree(const std::string& path) override {
    NS_RETURN_IF_ERROR(change());
    return inner_.remove_tree(path);
  }
  Expected<void> create_directories(const std::string& path) override {
    if (faults_.read_only && inner_.exists(path)) return {};  // nothing to create is no change
    NS_RETURN_IF_ERROR(change());
    return inner_.create_directories(path);
  }
  Expected<void> sync_directory(const std::string& path) override {
    NS_RETURN_IF_ERROR(change());
    return inner_.sync_directory(path);
  }
  Expected<std::vector<storage::DirectoryEntry>> list(const std::string& path) override {
    ++lists_;
    return inner_.list(path);
  }
  bool exists(const std::string& path) override { return inner_.exists(path); }
  Expected<bool> has_name(const std::string& path) override { return inner_.has_name(path); }
  Expected<std::uint64_t> free_bytes(const std::string& path) override { return inner_.free_bytes(path); }

 private:
  class File final : public storage::WritableFile {
   public:
    File(FaultFileEnv& env, std::unique_ptr<storage::WritableFile> inner)
        : env_(env), inner_(std::move(inner)) {}
    Expected<void> append(ByteSpan bytes) override {
      const bool tear = env_.faults_.tear_at_stop && env_.faults_.stop_at == env_.changes_;
      Expected<void> allowed = env_.change();
      if (!allowed.ok()) {
        if (tear) (void)inner_->append(bytes.first(bytes.size() / 2));
        return allowed;
      }
      env_.appended_ += bytes.size();
      if (auto& room = env_.faults_.room_bytes) {
        const auto fits = static_cast<std::size_t>(std::min<std::uint64_t>(*room, bytes.size()));
        *room -= fits;
        NS_RETURN_IF_ERROR(inner_->append(bytes.first(fits)));
        if (fits < bytes.size()) return make_error(ErrorCode::Exhausted, "the disk is full; free some space");
        return {};
      }
      return inner_->append(bytes);
    }
    Expected<void> sync() override {
      NS_RETURN_IF_ERROR(env_.change());
      return inner_->sync();
    }
    Expected<void> close() override {
      NS_RETURN_IF_ERROR(env_.change());
      return inner_->close();
    }

   private:
    FaultFileEnv& env_;
    std::unique_ptr<storage::WritableFile> inner_;
  };

  Expected<void> change() {
    const std::uint64_t number = changes_++;
    if (faults_.read_only) return make_error(ErrorCode::Denied, "the disk is read-only; make it writable");
    if (faults_.stop_at && number >= *faults_.stop_at) return make_error(ErrorCode::Io, "the machine is off");
    if (faults_.fail_at && number == *faults_.fail_at)
      return make_error(ErrorCode::Io, "the disk reported an error");
    return {};
  }

  Expected<std::unique_ptr<storage::WritableFile>> wrap(
      Expected<std::unique_ptr<storage::WritableFile>> file) {
    if (!file.ok()) return std::move(file).error();
    return std::unique_ptr<storage::WritableFile>(std::make_unique<File>(*this, std::move(file).value()));
  }

  storage::FileEnv& inner_;
  Faults faults_;
  std::string away_;
  ErrorCode away_code_ = ErrorCode::Unavailable;
  std::function<void(const std::string& path)> before_read_;
  std::function<void(const std::string& to)> before_rename_;
  std::uint64_t changes_ = 0;
  std::uint64_t appended_ = 0;
  std::atomic<std::uint64_t> lists_{0};  // other threads of a program list, too
};

}  // namespace neuroshard::testing
