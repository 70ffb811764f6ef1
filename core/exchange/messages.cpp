#include "core/exchange/messages.h"

#include <algorithm>

#include "core/base/check.h"

namespace neuroshard::exchange {
namespace {

constexpr std::size_t named_head = 8 + 32 + 8;
constexpr std::size_t request_bytes = 32 + 4;

Error corrupt(const char* what) {
  return make_error(ErrorCode::Corrupt, what);
}

Hash256 load_hash(const std::uint8_t* at) {
  Hash256 hash;
  std::copy_n(at, hash.size(), hash.begin());
  return hash;
}

void append(Bytes& target, ByteSpan bytes) {
  const std::size_t at = target.size();
  target.resize(at + bytes.size());
  std::copy(bytes.begin(), bytes.end(), target.begin() + static_cast<std::ptrdiff_t>(at));
}

}  // namespace

bool valid_name(std::string_view name) {
  return !name.empty() && name.size() <= max_name && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '/' || c == '-';
  });
}

Bytes encode_name(std::string_view name) {
  NS_CHECK(valid_name(name));
  const ByteSpan bytes = as_bytes(name);
  return Bytes(bytes.begin(), bytes.end());
}

Expected<std::string> decode_name(ByteSpan bytes) {
  if (!valid_name(as_text(bytes))) return corrupt("the name of a content is not valid");
  return std::string(as_text(bytes));
}

Bytes encode_named(const NamedContent& named) {
  NS_CHECK(valid_size(named.content.size) && named.note.size() <= max_note);
  Bytes bytes;
  append_le(bytes, named.version);
  append(bytes, named.content.hash);
  append_le(bytes, named.content.size);
  append(bytes, named.note);
  return bytes;
}

Expected<NamedContent> decode_named(ByteSpan bytes) {
  if (bytes.size() < named_head || bytes.size() > named_head + max_note)
    return corrupt("the entry of a named content has a wrong length");
  NamedContent named;
  named.version = load_le<std::uint64_t>(bytes.data());
  named.content.hash = load_hash(bytes.data() + 8);
  named.content.size = load_le<std::uint64_t>(bytes.data() + 40);
  if (!valid_size(named.content.size)) return corrupt("a named content is empty or too large");
  const ByteSpan note = bytes.subspan(named_head);
  named.note.assign(note.begin(), note.end());
  return named;
}

Bytes encode_piece_request(const PieceRequest& request) {
  Bytes bytes;
  append(bytes, request.hash);
  append_le(bytes, request.piece);
  return bytes;
}

Expected<PieceRequest> decode_piece_request(ByteSpan bytes) {
  if (bytes.size() != request_bytes) return corrupt("a request for a piece has a wrong length");
  return PieceRequest{load_hash(bytes.data()), load_le<std::uint32_t>(bytes.data() + 32)};
}

Bytes encode_piece_list(std::uint64_t size, Span<const Hash256> hashes) {
  NS_CHECK(valid_size(size) && hashes.size() <= max_listed_pieces);
  Bytes bytes;
  bytes.reserve(8 + hashes.size() * sizeof(Hash256));
  append_le(bytes, size);
  for (const Hash256& hash : hashes) append(bytes, hash);
  return bytes;
}

Expected<PieceList> decode_piece_list(ByteSpan bytes, std::uint32_t first) {
  if (bytes.size() < 8) return corrupt("a list of pieces ends early");
  PieceList list;
  list.size = load_le<std::uint64_t>(bytes.data());
  if (!valid_size(list.size)) return corrupt("a list of pieces is of an empty or too large content");
  const std::uint32_t pieces = piece_count(list.size);
  if (first >= pieces) return corrupt("a list of pieces begins behind its end");
  const std::size_t count = std::min<std::size_t>(pieces - first, max_listed_pieces);
  if (bytes.size() != 8 + count * sizeof(Hash256))
    return corrupt("a list of pieces has another length than its content's size says");
  list.hashes.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    list.hashes.push_back(load_hash(bytes.data() + 8 + i * sizeof(Hash256)));
  return list;
}

}  // namespace neuroshard::exchange
