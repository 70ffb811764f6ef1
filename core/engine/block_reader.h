// Reads a log of blocks (block_log.h) from its first block to its last, beside a node that may append to it.
// Changes nothing on the disk.  Threads: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/storage/file_env.h"

namespace neuroshard::engine {

class BlockReader {
 public:
  // The blocks that the file has now. NotFound: no such file. Corrupt: it is no log of this version.
  static Expected<BlockReader> open(storage::FileEnv& files, const std::string& path);

  std::uint64_t next_height() const { return next_height_; }
  // The next block; nothing at the end. Corrupt: the block of next_height() is damaged; the reader stays there.
  Expected<std::optional<Bytes>> next();
  // Bytes behind the last whole block: a node is writing them, or a kill, a full disk or damage left them.
  std::uint64_t tail_bytes() const { return size_ - at_; }

 private:
  BlockReader(std::unique_ptr<storage::ReadableFile> file, std::string path);
  std::unique_ptr<storage::ReadableFile> file_;
  std::string path_;
  std::uint64_t size_ = 0, at_ = 0, next_height_ = 0;
};

}  // namespace neuroshard::engine
