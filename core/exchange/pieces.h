// Files and their pieces on the disk. All functions read or write files: not for an executor that must not
// block.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/cancel.h"
#include "core/base/expected.h"
#include "core/crypto/hash.h"
#include "core/exchange/messages.h"
#include "core/storage/file_env.h"

namespace neuroshard::exchange {

struct HashedFile {
  Hash256 hash{};  // of the whole
  PieceList pieces;
};

// Where content is on the disk: a file, or a part of one.
struct ContentPlace {
  std::string path;
  std::uint64_t offset = 0;
  friend bool operator==(const ContentPlace&, const ContentPlace&) = default;
};

// Reads a file once. Exhausted: empty, or over max_content_bytes.
Expected<HashedFile> hash_file(storage::FileEnv& env, const std::string& path);

// Hashes content part by part, so that other work of the disk can pass in between.
class ContentHasher {
 public:
  // env: outlives it. size: valid.
  ContentHasher(storage::FileEnv& env, ContentPlace place, std::uint64_t size);
  // Reads up to so many further pieces. True: all have been read. Corrupt: the file has no such part.
  Expected<bool> read(std::uint32_t pieces);
  // Once, after all have been read.
  HashedFile finish();

 private:
  storage::FileEnv& env_;
  const ContentPlace place_;
  std::unique_ptr<storage::ReadableFile> file_;  // null before the first read
  crypto::Sha256 whole_;
  PieceList pieces_;
  Bytes buffer_;
};

Expected<Bytes> read_piece(storage::FileEnv& env, const ContentPlace& place, std::uint64_t size,
                           std::uint32_t piece);

// Counts the pieces at the beginning of a partly fetched file that match the list; cuts off the rest. No
// file: 0.
Expected<std::uint32_t> keep_matching(storage::FileEnv& env, const std::string& path, const PieceList& list);

}  // namespace neuroshard::exchange
