// A disk in memory that knows what a power cut leaves behind. Every file and folder has a live state, which
// programs see, and a durable state, which a power cut keeps: sync() makes a file's bytes durable,
// sync_directory() a folder's names. Threads: one.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/storage/file_env.h"

namespace neuroshard::testing {

// The fate of unsynced writes at a power cut. Real disks do any of these.
enum class PowerCut {
  OnlySynced,        // nothing un-synced survives, neither names nor bytes
  NamesWithoutData,  // renames and new names survive, un-synced bytes do not: the classic file of zero bytes
  TornData,          // names survive, and the first half of the un-synced bytes
  Everything,        // the program was killed, the machine was not
};

class MemoryFileEnv final : public storage::FileEnv {
 public:
  MemoryFileEnv();

  // Forgets what the cut does not leave. Files that were open must no longer be used.
  void power_cut(PowerCut kind);

  // Space of the disk; writing beyond it writes what fits and fails with Exhausted.
  void set_capacity(std::uint64_t bytes) { capacity_ = bytes; }
  std::uint64_t used_bytes() const;
  // Flips the bits of `mask` in one byte; the file must be longer than `at`.
  void flip(const std::string& path, std::uint64_t at, std::uint8_t mask = 0x01);
  void truncate(const std::string& path, std::uint64_t size);

  Expected<std::unique_ptr<storage::ReadableFile>> open_read(const std::string& path) override;
  Expected<std::unique_ptr<storage::WritableFile>> open_write(const std::string& path,
                                                              bool world_readable) override;
  Expected<std::unique_ptr<storage::WritableFile>> open_append(const std::string& path) override;
  Expected<void> rename(const std::string& from, const std::string& to) override;
  Expected<void> remove_file(const std::string& path) override;
  Expected<void> remove_tree(const std::string& path) override;
  Expected<void> create_directories(const std::string& path) override;
  Expected<void> sync_directory(const std::string& path) override;
  Expected<std::vector<storage::DirectoryEntry>> list(const std::string& path) override;
  bool exists(const std::string& path) override;
  Expected<bool> has_name(const std::string& path) override { return exists(path); }
  Expected<std::uint64_t> free_bytes(const std::string& path) override;

  // A file or a folder; public for the files that this environment hands out.
  struct Node {
    bool is_directory = false;
    Bytes live;
    Bytes durable;
    std::map<std::string, std::shared_ptr<Node>> names;
    std::map<std::string, std::shared_ptr<Node>> durable_names;
  };

 private:
  std::shared_ptr<Node> find(const std::string& path) const;
  std::shared_ptr<Node> parent(const std::string& path) const;
  Expected<std::unique_ptr<storage::WritableFile>> open_for_writing(const std::string& path, bool truncate);

  std::shared_ptr<Node> root_;
  std::uint64_t capacity_ = ~std::uint64_t{0};
};

}  // namespace neuroshard::testing
