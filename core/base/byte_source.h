// Bytes that are read in parts: in memory, or in a file that is never in memory as a whole. Payloads and anchors
// of outer rounds are too large for memory, and every computation on them goes from start to end.
//
// Threads: any. A source is immutable; several threads may write parts of a sink at once that do not overlap.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"

namespace neuroshard {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::uint64_t size() const = 0;
  // Exactly target.size() bytes from `offset` on.  Errors: Corrupt when it ends before, and those of the disk.
  virtual Expected<void> read_at(std::uint64_t offset, MutableByteSpan target) const = 0;
  // All of it, for as long as the source lives, where it is in memory anyway; else nothing. Spares a copy.
  virtual ByteSpan view() const { return {}; }
};
using ByteSourcePtr = std::shared_ptr<const ByteSource>;

class ByteSink {
 public:
  virtual ~ByteSink() = default;
  // Anywhere within the size that it was made for, in any order.  Errors: those of the disk.
  virtual Expected<void> write_at(std::uint64_t offset, ByteSpan bytes) = 0;
};

// Bytes that stay the caller's.
class BytesView final : public ByteSource {
 public:
  explicit BytesView(ByteSpan bytes) : bytes_(bytes) {}
  std::uint64_t size() const override { return bytes_.size(); }
  Expected<void> read_at(std::uint64_t offset, MutableByteSpan target) const override;
  ByteSpan view() const override { return bytes_; }

 private:
  ByteSpan bytes_;
};

ByteSourcePtr in_memory(Bytes bytes);
ByteSourcePtr zero_bytes(std::uint64_t size);
// [offset, offset + size) of a source, which has that many.
ByteSourcePtr part_of(ByteSourcePtr whole, std::uint64_t offset, std::uint64_t size);
// One after the other.
ByteSourcePtr joined(std::vector<ByteSourcePtr> parts);

// The whole in memory: for small sources.
Expected<Bytes> read_all(const ByteSource& source);
// Reads in parts of at most `most` bytes; `use(offset, bytes)` returns Expected<void>.
template <class Use>
Expected<void> read_in_parts(const ByteSource& source, std::size_t most, Use use) {
  Bytes buffer;
  for (std::uint64_t at = 0; at < source.size(); at += buffer.size()) {
    buffer.resize(static_cast<std::size_t>(source.size() - at < most ? source.size() - at : most));
    NS_RETURN_IF_ERROR(source.read_at(at, buffer));
    NS_RETURN_IF_ERROR(use(at, ByteSpan(buffer)));
  }
  return {};
}

}  // namespace neuroshard
