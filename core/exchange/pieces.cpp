#include "core/exchange/pieces.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/crypto/hash.h"

namespace neuroshard::exchange {

namespace {

Expected<HashedFile> hash_part(storage::ReadableFile& file, std::uint64_t offset, std::uint64_t size) {
  HashedFile hashed;
  hashed.pieces.size = size;
  crypto::Sha256 whole;
  Bytes buffer;
  for (std::uint32_t piece = 0; piece < piece_count(size); ++piece) {
    buffer.resize(piece_length(size, piece));
    NS_RETURN_IF_ERROR(file.read_at(offset + piece * piece_bytes, buffer));
    whole.update(buffer);
    hashed.pieces.hashes.push_back(crypto::sha256(buffer));
  }
  hashed.hash = whole.finish();
  return hashed;
}

}  // namespace

Expected<HashedFile> hash_file(storage::FileEnv& env, const std::string& path) {
  NS_ASSIGN_OR_RETURN(const auto file, env.open_read(path));
  if (!valid_size(file->size())) {
    return make_error(ErrorCode::Exhausted, fmt::format("{} has {} bytes; nodes exchange files of 1 to {}",
                                                        path, file->size(), max_content_bytes));
  }
  return hash_part(*file, 0, file->size());
}

Expected<HashedFile> hash_content(storage::FileEnv& env, const ContentPlace& place, std::uint64_t size) {
  NS_ASSIGN_OR_RETURN(const auto file, env.open_read(place.path));
  if (place.offset > file->size() || size > file->size() - place.offset)
    return make_error(ErrorCode::Corrupt, place.path + " is shorter than it was");
  return hash_part(*file, place.offset, size);
}

Expected<Bytes> read_piece(storage::FileEnv& env, const ContentPlace& place, std::uint64_t size,
                           std::uint32_t piece) {
  NS_ASSIGN_OR_RETURN(const auto file, env.open_read(place.path));
  Bytes bytes(piece_length(size, piece));
  NS_RETURN_IF_ERROR(file->read_at(place.offset + piece * piece_bytes, bytes));
  return bytes;
}

Expected<std::uint32_t> keep_matching(storage::FileEnv& env, const std::string& path, const PieceList& list) {
  std::uint32_t kept = 0;
  Bytes buffer;
  {
    auto opened = env.open_read(path);
    if (!opened.ok()) {
      if (opened.error().code == ErrorCode::NotFound) return 0u;
      return std::move(opened).error();
    }
    const auto& file = *opened;
    for (; kept < list.hashes.size(); ++kept) {
      buffer.resize(piece_length(list.size, kept));
      if (file->size() < kept * piece_bytes + buffer.size()) break;
      NS_RETURN_IF_ERROR(file->read_at(kept * piece_bytes, buffer));
      if (crypto::sha256(buffer) != list.hashes[kept]) break;
    }
    const std::uint64_t bytes = std::min<std::uint64_t>(kept * piece_bytes, list.size);
    if (file->size() == bytes) return kept;
    // Files are only ever extended, so the valid beginning is copied.
    NS_ASSIGN_OR_RETURN(const auto cut, env.open_write(path + ".cut", true));
    for (std::uint32_t piece = 0; piece < kept; ++piece) {
      buffer.resize(piece_length(list.size, piece));
      NS_RETURN_IF_ERROR(file->read_at(piece * piece_bytes, buffer));
      NS_RETURN_IF_ERROR(cut->append(buffer));
    }
    NS_RETURN_IF_ERROR(cut->close());
  }
  NS_RETURN_IF_ERROR(env.rename(path + ".cut", path));
  return kept;
}

}  // namespace neuroshard::exchange
