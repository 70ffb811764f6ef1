// A file written and hashed in one pass. Private to core/checkpoint.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "core/checkpoint/detail/layout.h"
#include "core/checkpoint/manifest.h"
#include "core/checkpoint/slot_index.h"
#include "core/crypto/hash.h"
#include "core/storage/file_env.h"

namespace neuroshard::checkpoint::detail {

// Gets the size of each chunk once it is written.
using AfterChunk = std::function<void(std::size_t bytes)>;

class HashingFile {
 public:
  static Expected<HashingFile> create(storage::FileEnv& env, const std::string& folder,
                                      const std::string& name, bool world_readable = false) {
    NS_ASSIGN_OR_RETURN(auto file, env.open_write(folder + "/" + name, world_readable));
    return HashingFile(std::move(file), name);
  }

  // The same for a file whose size is known, large or small.
  static Expected<HashingFile> create_large(storage::FileEnv& env, const std::string& folder,
                                            const std::string& name, const storage::LargeFile& size) {
    NS_ASSIGN_OR_RETURN(auto file, env.open_write_large(folder + "/" + name, size));
    return HashingFile(std::move(file), name);
  }

  // May be null. Outlives this object.
  void set_after_chunk(const AfterChunk* after_chunk) { after_chunk_ = after_chunk; }

  // Hashes each chunk while it is warm in the cache, then writes it.
  Expected<void> append(ByteSpan bytes) {
    while (!bytes.empty()) {
      const ByteSpan chunk = bytes.first(std::min(bytes.size(), chunk_bytes));
      hash_->update(chunk);
      if (run_hash_) run_hash_->update(chunk);
      NS_RETURN_IF_ERROR(file_->append(chunk));
      bytes_ += chunk.size();
      bytes = bytes.subspan(chunk.size());
      if (after_chunk_ != nullptr && *after_chunk_) (*after_chunk_)(chunk.size());
    }
    return {};
  }

  // The bytes appended from here to end_run() get a hash of their own.
  void begin_run() {
    run_begin_ = bytes_;
    run_hash_ = std::make_unique<crypto::Sha256>();
  }
  // run: what it is of; offset, bytes and hash are filled in.
  SlotRun end_run(SlotRun run) {
    run.offset = run_begin_;
    run.bytes = bytes_ - run_begin_;
    run.sha256 = std::exchange(run_hash_, nullptr)->finish();
    return run;
  }

  // On the disk when this returns.
  Expected<FileRecord> finish() {
    NS_RETURN_IF_ERROR(file_->sync());
    NS_RETURN_IF_ERROR(file_->close());
    return FileRecord{name_, bytes_, hash_->finish()};
  }

 private:
  HashingFile(std::unique_ptr<storage::WritableFile> file, std::string name)
      : file_(std::move(file)), name_(std::move(name)), hash_(std::make_unique<crypto::Sha256>()) {}

  std::unique_ptr<storage::WritableFile> file_;
  std::string name_;
  std::unique_ptr<crypto::Sha256> hash_, run_hash_;
  std::uint64_t run_begin_ = 0;
  const AfterChunk* after_chunk_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace neuroshard::checkpoint::detail
