// Messages about files that are known by their SHA-256, as bytes. Readers check every length. Pieces are 256
// KiB, the last one shorter.
//
//   ContentNamed    name: 1 … 64 bytes of [a-z0-9._/-]
//     answer        version u64 · SHA-256 · size u64 · note, the rest (4 KiB at most)
//   ContentPieces   SHA-256 · first piece u32
//     answer        size of the content u64 · SHA-256 of each piece from the first on, 8192 at most
//   ContentPiece    SHA-256 · piece u32
//     answer        the piece
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/net/peer_channel.h"

namespace neuroshard::exchange {

inline constexpr std::uint64_t piece_bytes = net::chunk_bytes;
inline constexpr std::uint64_t max_content_bytes = std::uint64_t{16} << 30;  // 2 MiB of hashes
inline constexpr std::size_t max_name = 64;
inline constexpr std::size_t max_note = 4096;
inline constexpr std::size_t max_listed_pieces = net::chunk_bytes / sizeof(Hash256);

// A file of 1 … max_content_bytes bytes, on whichever node.
struct ContentRef {
  Hash256 hash{};
  std::uint64_t size = 0;
  friend bool operator==(const ContentRef&, const ContentRef&) = default;
};
inline bool valid_size(std::uint64_t size) {
  return size > 0 && size <= max_content_bytes;
}
inline std::uint32_t piece_count(std::uint64_t size) {
  return static_cast<std::uint32_t>((size + piece_bytes - 1) / piece_bytes);
}
inline std::size_t piece_length(std::uint64_t size, std::uint32_t piece) {
  const std::uint64_t left = size - piece * piece_bytes;
  return static_cast<std::size_t>(left < piece_bytes ? left : piece_bytes);
}

// The content that a node gives for a name at present; only the node's id is proven. The note belongs to the
// name: for a manifest, its signature.
struct NamedContent {
  std::uint64_t version = 0;
  ContentRef content;
  Bytes note;
  friend bool operator==(const NamedContent&, const NamedContent&) = default;
};

struct PieceRequest {
  Hash256 hash{};
  std::uint32_t piece = 0;  // of a list: the first
  friend bool operator==(const PieceRequest&, const PieceRequest&) = default;
};

struct PieceList {
  std::uint64_t size = 0;  // of the whole content
  std::vector<Hash256> hashes;
  friend bool operator==(const PieceList&, const PieceList&) = default;
};

// All readers: Corrupt; they accept canonical bytes only.
bool valid_name(std::string_view name);
Bytes encode_name(std::string_view name);
Expected<std::string> decode_name(ByteSpan bytes);
Bytes encode_named(const NamedContent& named);
Expected<NamedContent> decode_named(ByteSpan bytes);
Bytes encode_piece_request(const PieceRequest& request);
Expected<PieceRequest> decode_piece_request(ByteSpan bytes);
Bytes encode_piece_list(std::uint64_t size, Span<const Hash256> hashes);
// first: as requested. As many hashes as the content has pieces from there on, up to the bound.
Expected<PieceList> decode_piece_list(ByteSpan bytes, std::uint32_t first);

}  // namespace neuroshard::exchange
