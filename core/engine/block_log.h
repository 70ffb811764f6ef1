// The certified blocks of a chain in one file to which blocks are only appended.
//
//   "NSCB" · version u16, 1 · first height u64 · each block: length u32 · CRC-32C of the block u32 · block
//
// A tail that a kill or a full disk has torn is cut off when the log is opened, or before the next block.
// Integers are little-endian.  Threads: one at a time. Errors: those of the file system; NotFound.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/storage/file_env.h"

namespace neuroshard::engine {

inline constexpr std::uint32_t longest_block = 8u << 20;  // with its certificate

class BlockLog {
 public:
  // Reads the whole file once. A missing file is an empty log from height 0; a damaged block ends the log.
  // files and logger outlive it.
  static Expected<std::unique_ptr<BlockLog>> open(storage::FileEnv& files, std::string path, Logger& logger);

  std::uint64_t first() const { return next_first_.value_or(first_); }
  std::uint64_t count() const { return ends_.size(); }
  Expected<Bytes> read(std::uint64_t height) const;
  // The first `most` bytes of the block. open() has checked them, this does not.
  Expected<Bytes> read_beginning(std::uint64_t height, std::size_t most) const;
  // The block is on the disk when this returns. A height that the log has is replaced, with all that follow.
  // InvalidArgument: the height does not follow.
  Expected<void> append(std::uint64_t height, ByteSpan block);
  // Keeps the first `count` blocks.
  Expected<void> cut(std::uint64_t count);
  // An empty log from this height. A log that has blocks keeps them under the name PATH.N. After an error the next change tries
  // it again, and until then the log has no block.
  Expected<void> restart(std::uint64_t first);

 private:
  BlockLog(storage::FileEnv& files, std::string path, Logger& logger);
  Expected<void> load();
  Expected<void> begin_anew();
  Expected<void> write_head();
  Expected<void> rewrite(std::uint64_t bytes);
  Expected<std::uint64_t> index_of(std::uint64_t height) const;
  std::uint64_t begin_of(std::uint64_t index) const;
  std::uint64_t end() const;

  storage::FileEnv& files_;
  const std::string path_, folder_;
  Logger& logger_;
  std::uint64_t first_ = 0;
  std::optional<std::uint64_t> next_first_;  // of a restart that is not on the disk yet
  std::vector<std::uint64_t> ends_;          // offset behind each block
  bool is_whole_ = true;                     // nothing is behind the last block
  std::unique_ptr<storage::WritableFile> file_;
};

}  // namespace neuroshard::engine
