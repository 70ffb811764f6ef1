#include "core/exchange/pieces.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace neuroshard::exchange {

ContentHasher::ContentHasher(storage::FileEnv& env, ContentPlace place, std::uint64_t size)
    : env_(env), place_(std::move(place)) {
  pieces_.size = size;
}

Expected<bool> ContentHasher::read(std::uint32_t pieces) {
  const std::uint64_t size = pieces_.size;
  if (!file_) {
    NS_ASSIGN_OR_RETURN(file_, env_.open_read(place_.path));
    if (place_.offset > file_->size() || size > file_->size() - place_.offset)
      return make_error(ErrorCode::Corrupt, place_.path + " is shorter than it was");
  }
  auto piece = static_cast<std::uint32_t>(pieces_.hashes.size());
  const std::uint32_t all = piece_count(size);
  const std::uint32_t end = piece + std::min(pieces, all - piece);
  for (; piece < end; ++piece) {
    buffer_.resize(piece_length(size, piece));
    NS_RETURN_IF_ERROR(file_->read_at(place_.offset + piece * piece_bytes, buffer_));
    whole_.update(buffer_);
    pieces_.hashes.push_back(crypto::sha256(buffer_));
  }
  return end == all;
}

HashedFile ContentHasher::finish() {
  return {whole_.finish(), std::move(pieces_)};
}

Expected<HashedFile> hash_file(storage::FileEnv& env, const std::string& path) {
  NS_ASSIGN_OR_RETURN(const auto file, env.open_read(path));
  const std::uint64_t size = file->size();
  if (!valid_size(size)) {
    return make_error(ErrorCode::Exhausted, fmt::format("{} has {} bytes; nodes exchange files of 1 to {}",
                                                        path, size, max_content_bytes));
  }
  ContentHasher hasher(env, {path, 0}, size);
  NS_ASSIGN_OR_RETURN(const bool all, hasher.read(piece_count(size)));
  NS_CHECK(all);
  return hasher.finish();
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
