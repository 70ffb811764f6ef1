#include "core/chain/server.h"

#include <algorithm>

#include "core/chain/messages.h"
#include "core/chain/reader.h"

namespace neuroshard::chain {
namespace {

constexpr std::size_t registry_piece_bytes = 256u << 10;

}  // namespace

Expected<Bytes> ChainServer::blocks(const History* history, ByteSpan request) const {
  if (request.size() != 8) return make_error(ErrorCode::InvalidArgument, "a request for blocks has 8 bytes");
  if (history == nullptr) return make_error(ErrorCode::NotFound, "this node has no history yet");
  const auto from = load_le<std::uint64_t>(request.data());
  BlocksAnswer answer;
  answer.blocks = history->blocks_from(from, most_answer_bytes,
                                       [this](std::uint64_t height) { return store_.load_block(height); });
  answer.more = from + answer.blocks.size() <= history->tip().height() && !answer.blocks.empty();
  return encode_blocks_answer(answer);
}

Expected<Bytes> ChainServer::registry(const History* history, ByteSpan request) {
  if (request.size() != 40)
    return make_error(ErrorCode::InvalidArgument, "a request for a registry has 40 bytes");
  if (history == nullptr) return make_error(ErrorCode::NotFound, "this node has no history yet");
  Reader reader(request);
  const auto block = reader.array<Hash256>();
  const auto offset = reader.number<std::uint64_t>();
  if (encoded_.first != block) {
    if (block != history->tip().block->hash)
      return make_error(ErrorCode::NotFound, "this node gives the registry of its newest block only");
    encoded_ = {block, history->tip().registry->encode()};
  }
  const Bytes& whole = encoded_.second;
  if (offset > whole.size()) return make_error(ErrorCode::InvalidArgument, "the registry is shorter");
  Bytes answer;
  append_le(answer, static_cast<std::uint64_t>(whole.size()));
  const std::size_t count = std::min<std::size_t>(registry_piece_bytes, whole.size() - offset);
  answer.insert(answer.end(), whole.begin() + static_cast<std::ptrdiff_t>(offset),
                whole.begin() + static_cast<std::ptrdiff_t>(offset + count));
  return answer;
}

}  // namespace neuroshard::chain
