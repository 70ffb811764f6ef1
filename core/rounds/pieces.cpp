#include "core/rounds/pieces.h"

#include <algorithm>

#include "core/base/byte_reader.h"
#include "core/net/peer_channel.h"

namespace neuroshard::rounds {

Bytes encode_piece_request(const PieceRequest& request) {
  Bytes bytes;
  append_le(bytes, request.row);
  bytes.push_back(static_cast<std::uint8_t>(request.what));
  append_record(bytes, std::tie(request.hash, request.place));
  return bytes;
}

Expected<PieceRequest> decode_piece_request(ByteSpan bytes) {
  ByteReader reader(bytes);
  PieceRequest request;
  request.row = reader.number<std::uint32_t>();
  const auto what = reader.number<std::uint8_t>();
  request.what = static_cast<PieceRequest::What>(what);
  reader.read(std::tie(request.hash, request.place));
  if (!reader.at_end() || what < 1 || what > 8)
    return make_error(ErrorCode::Corrupt, "this is no request for a piece");
  return request;
}

Bytes encode_piece_answer(std::uint64_t whole, ByteSpan bytes) {
  Bytes answer;
  answer.reserve(sizeof whole + bytes.size());
  append_le(answer, whole);
  answer.insert(answer.end(), bytes.begin(), bytes.end());
  return answer;
}

Expected<Bytes> answer_from(ByteSpan whole, std::uint64_t place) {
  if (place >= whole.size()) return piece_not_held();
  const ByteSpan rest = whole.subspan(static_cast<std::size_t>(place));
  return encode_piece_answer(whole.size(), rest.first(std::min(rest.size(), net::chunk_bytes)));
}

Expected<Bytes> answer_from(const ByteSource& source, std::uint64_t begin, std::uint64_t size,
                            std::uint64_t place) {
  if (place >= size) return piece_not_held();
  Bytes answer;
  append_le(answer, size);
  const std::size_t head = answer.size();
  answer.resize(head + static_cast<std::size_t>(std::min<std::uint64_t>(size - place, net::chunk_bytes)));
  NS_RETURN_IF_ERROR(source.read_at(begin + place, {answer.data() + head, answer.size() - head}));
  return answer;
}

Error piece_not_held() {
  return make_error(ErrorCode::NotFound, "this node does not hold what is asked for");
}

Expected<PieceAnswer> decode_piece_answer(ByteSpan bytes) {
  ByteReader reader(bytes);
  PieceAnswer answer;
  answer.whole = reader.number<std::uint64_t>();
  answer.bytes = reader.rest();
  if (!reader.at_end() || answer.bytes.empty() || answer.bytes.size() > net::chunk_bytes ||
      answer.bytes.size() > answer.whole)
    return make_error(ErrorCode::Corrupt, "this is no piece of a payload or an anchor");
  return answer;
}

}  // namespace neuroshard::rounds
