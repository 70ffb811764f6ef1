// A part of a source that is read from its start to its end, through a buffer: what readers of payloads have
// instead of the whole payload.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/base/byte_source.h"

namespace neuroshard::outer::detail {

// Threads: one.
class ByteWindow {
 public:
  static constexpr std::size_t most = 64 * 1024;

  // [begin, begin + size) of the source, which has that many. Reads nothing yet.
  ByteWindow(ByteSourcePtr source, std::uint64_t begin, std::uint64_t size);

  std::uint64_t size() const { return size_; }
  // Bytes [offset, offset + bytes), which the window has, `bytes` ≤ most; good until the next call. An offset is
  // never lower than that of the call before.  Null: the source failed, now or earlier.
  const std::uint8_t* at(std::uint64_t offset, std::size_t bytes) {
    const std::uint64_t place = offset - first_;
    return place + bytes <= held_ ? bytes_ + place : load(offset, bytes);
  }
  // Of the source; null: none so far.
  const Error* error() const { return error_ ? &*error_ : nullptr; }

 private:
  const std::uint8_t* load(std::uint64_t offset, std::size_t bytes);

  ByteSourcePtr source_;
  std::uint64_t begin_, size_;
  std::size_t room_;
  std::unique_ptr<std::uint8_t[]> buffer_;
  const std::uint8_t* bytes_;  // the buffer, or the whole where it stands in memory anyway
  std::uint64_t first_ = 0;    // offset of its first byte
  std::size_t held_ = 0;       // bytes in it
  std::optional<Error> error_;
};

}  // namespace neuroshard::outer::detail
