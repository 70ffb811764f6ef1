// Bits in a byte stream, lowest bit of a byte first, and Golomb-Rice numbers in it: n >> r zeros, a one, then
// the lower r bits of n (Rice 1979).
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/base/bytes.h"
#include "core/outer/detail/byte_window.h"

namespace neuroshard::outer::detail {

// Writes to memory that the caller has sized: 8 bytes beyond the last bit may be touched.
class BitWriter {
 public:
  explicit BitWriter(std::uint8_t* out) : begin_(out), at_(out) {}

  // bits ≤ 56; value < 2^bits.
  void put(std::uint64_t value, unsigned bits) {
    pending_ |= value << filled_;
    filled_ += bits;
    store_le(at_, pending_);
    at_ += filled_ / 8;
    pending_ >>= filled_ & ~7u;
    filled_ &= 7;
  }
  void put_rice(std::uint32_t value, unsigned r) {
    std::uint32_t zeros = value >> r;
    for (; zeros > 32; zeros -= 32) put(0, 32);
    const std::uint64_t rest = value & ((std::uint32_t{1} << r) - 1);
    put((rest << 1 | 1) << zeros, zeros + 1 + r);
  }
  // The number of bytes begun; the bits left in the last one are 0.
  std::size_t finish() const { return static_cast<std::size_t>(at_ - begin_) + (filled_ > 0 ? 1 : 0); }

 private:
  std::uint8_t* begin_;
  std::uint8_t* at_;
  std::uint64_t pending_ = 0;
  unsigned filled_ = 0;  // < 8 between calls
};

// Beyond the end there are zeros, and after an error of the source; both are asked for, with past_end() and
// error().
class BitReader {
 public:
  explicit BitReader(ByteWindow bytes) : bytes_(std::move(bytes)) {}

  // bits ≤ 56.
  std::uint64_t take(unsigned bits) {
    const std::uint64_t value = ahead() & ((std::uint64_t{1} << bits) - 1);
    at_ += bits;
    return value;
  }
  // A number below `bound` (a 32-bit one), else `bound`: then the stream is no use any more. r ≤ 24.
  std::uint32_t take_rice(unsigned r, std::uint32_t bound) {
    std::uint64_t zeros = 0;
    std::uint64_t word = ahead() & useful_bits;
    while (word == 0) {
      zeros += 56;
      at_ += 56;
      if (zeros << r >= bound) return bound;
      word = ahead() & useful_bits;
    }
    const unsigned run = static_cast<unsigned>(std::countr_zero(word));
    zeros += run;
    at_ += run + 1;
    const std::uint64_t value = zeros << r | take(r);
    return value < bound ? static_cast<std::uint32_t>(value) : bound;
  }
  bool past_end() const { return at_ > bytes_.size() * std::uint64_t{8}; }
  // Whether every bit was taken but for less than 8, which are 0.
  bool ends_here() {
    if (past_end() || (at_ + 7) / 8 != bytes_.size()) return false;
    return at_ % 8 == 0 || ahead() == 0;
  }
  const Error* error() const { return bytes_.error(); }

 private:
  static constexpr std::uint64_t useful_bits = (std::uint64_t{1} << 56) - 1;

  // At least the next 56 bits.
  std::uint64_t ahead() {
    const std::uint64_t byte = at_ / 8;
    if (byte + 8 > bytes_.size()) return ahead_at_end(byte) >> (at_ % 8);
    const std::uint8_t* const word = bytes_.at(byte, 8);
    return word == nullptr ? 0 : load_le<std::uint64_t>(word) >> (at_ % 8);
  }
  std::uint64_t ahead_at_end(std::uint64_t byte) {
    if (byte >= bytes_.size()) return 0;
    const auto left = static_cast<std::size_t>(bytes_.size() - byte);
    const std::uint8_t* const last = bytes_.at(byte, left);
    std::uint64_t word = 0;
    for (std::size_t i = 0; last != nullptr && i < left; ++i) word |= std::uint64_t{last[i]} << (8 * i);
    return word;
  }

  ByteWindow bytes_;
  std::uint64_t at_ = 0;  // bits taken
};

}  // namespace neuroshard::outer::detail
