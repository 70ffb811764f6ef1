// Bytes that lie in several pieces of memory, as they came from a connection: nothing is copied until the
// consumer knows the target. Read-only and cheap to copy; the memory under the pieces is released with the
// last copy.  Threads: as a value.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/base/bytes.h"

namespace neuroshard {

class ByteChain {
 public:
  ByteChain() = default;
  explicit ByteChain(Bytes whole);
  // pieces: in order; they point into what `owner` keeps alive.
  ByteChain(std::vector<ByteSpan> pieces, std::shared_ptr<const void> owner);

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Span<const ByteSpan> pieces() const { return {pieces_.data(), pieces_.size()}; }
  // target: room for size() bytes.
  void copy_to(std::uint8_t* target) const;
  Bytes bytes() const;

 private:
  std::vector<ByteSpan> pieces_;
  std::shared_ptr<const void> owner_;
  std::size_t size_ = 0;
};

}  // namespace neuroshard
