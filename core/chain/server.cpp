#include "core/chain/server.h"

#include <algorithm>

#include "core/chain/messages.h"

namespace neuroshard::chain {

bool ChainServer::handles(net::Method method) {
  return method == net::Method::ChainPost || method == net::Method::ChainStatus ||
         method == net::Method::ChainBlocks || method == net::Method::ChainRegistry;
}

Expected<Bytes> ChainServer::blocks(const History* history, ByteSpan request) const {
  NS_ASSIGN_OR_RETURN(const std::uint64_t from, decode_blocks_request(request));
  if (history == nullptr) return make_error(ErrorCode::NotFound, "this node has no history yet");
  const std::vector<BlockBytes> blocks = history->blocks_from(
      from, most_answer_bytes, [this](std::uint64_t height) { return store_.load_block(height); });
  BlocksAnswer answer;
  for (const BlockBytes& block : blocks) answer.blocks.emplace_back(*block);
  answer.more = !answer.blocks.empty() && from + answer.blocks.size() <= history->tip().height();
  return encode_blocks_answer(answer);
}

Expected<Bytes> ChainServer::registry(const History* history, ByteSpan bytes) {
  NS_ASSIGN_OR_RETURN(const RegistryRequest request, decode_registry_request(bytes));
  if (history == nullptr) return make_error(ErrorCode::NotFound, "this node has no history yet");
  if (encoded_.first != request.block) {
    if (request.block != history->tip().block->hash)
      return make_error(ErrorCode::NotFound, "this node gives the registry of its newest block only");
    encoded_ = {request.block, history->tip().registry->encode()};
  }
  const Bytes& whole = encoded_.second;
  if (request.offset >= whole.size())
    return make_error(ErrorCode::InvalidArgument, "the registry is shorter");
  const auto first = whole.begin() + static_cast<std::ptrdiff_t>(request.offset);
  const std::size_t count = std::min<std::size_t>(max_registry_piece, whole.size() - request.offset);
  return encode_registry_answer({whole.size(), Bytes(first, first + static_cast<std::ptrdiff_t>(count))});
}

}  // namespace neuroshard::chain
