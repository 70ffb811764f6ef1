#include "core/base/byte_chain.h"

namespace neuroshard {

ByteChain::ByteChain(Bytes whole) : size_(whole.size()) {
  auto owner = std::make_shared<const Bytes>(std::move(whole));
  if (size_ != 0) pieces_ = {ByteSpan(owner->data(), owner->size())};
  owner_ = std::move(owner);
}

ByteChain::ByteChain(std::vector<ByteSpan> pieces, std::shared_ptr<const void> owner)
    : pieces_(std::move(pieces)), owner_(std::move(owner)) {
  for (const ByteSpan piece : pieces_) size_ += piece.size();
}

void ByteChain::copy_to(std::uint8_t* target) const {
  for (const ByteSpan piece : pieces_) {
    if (piece.empty()) continue;
    std::memcpy(target, piece.data(), piece.size());
    target += piece.size();
  }
}

Bytes ByteChain::bytes() const {
  Bytes whole;
  whole.reserve(size_);
  for (const ByteSpan piece : pieces_) whole.insert(whole.end(), piece.begin(), piece.end());
  return whole;
}

}  // namespace neuroshard
