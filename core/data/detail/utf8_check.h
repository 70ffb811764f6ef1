// Streaming check of UTF-8 (RFC 3629): counts what is malformed instead of stopping at it.
#pragma once

#include <cstdint>

#include "core/base/bytes.h"

namespace neuroshard::data::detail {

class Utf8Check {
 public:
  void add(ByteSpan bytes) {
    for (const std::uint8_t byte : bytes) add(byte);
  }
  // Malformed sequences so far; a sequence that the end cuts off counts once finish() was called.
  std::uint64_t errors() const { return errors_; }
  std::uint64_t nul_bytes() const { return nul_bytes_; }
  void finish() {
    if (pending_ > 0) ++errors_;
    pending_ = 0;
  }

 private:
  void add(std::uint8_t byte) {
    if (pending_ > 0) {
      if (byte >= low_ && byte <= high_) {
        --pending_;
        low_ = 0x80;
        high_ = 0xbf;
        return;
      }
      ++errors_;
      pending_ = 0;
    }
    start(byte);
  }
  void start(std::uint8_t byte) {
    low_ = 0x80;
    high_ = 0xbf;
    if (byte < 0x80) {
      if (byte == 0) ++nul_bytes_;
    } else if (byte >= 0xc2 && byte <= 0xdf) {
      pending_ = 1;
    } else if (byte >= 0xe0 && byte <= 0xef) {
      pending_ = 2;
      if (byte == 0xe0) low_ = 0xa0;   // no overlong forms
      if (byte == 0xed) high_ = 0x9f;  // no surrogates
    } else if (byte >= 0xf0 && byte <= 0xf4) {
      pending_ = 3;
      if (byte == 0xf0) low_ = 0x90;
      if (byte == 0xf4) high_ = 0x8f;  // no more than U+10FFFF
    } else {
      ++errors_;
    }
  }

  std::uint64_t errors_ = 0;
  std::uint64_t nul_bytes_ = 0;
  std::uint8_t pending_ = 0;
  std::uint8_t low_ = 0x80;
  std::uint8_t high_ = 0xbf;
};

// The largest position ≤ at that does not split a well-formed character; at < text.size().
inline std::size_t character_start(ByteSpan text, std::size_t at) {
  std::size_t start = at;
  while (start > 0 && at - start < 3 && (text[start] & 0xc0) == 0x80) --start;
  return (text[start] & 0xc0) == 0x80 ? at : start;
}

}  // namespace neuroshard::data::detail
