// Bytes, their views, hex, and little-endian integers: every format of ours is little-endian.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/expected.h"
#include "core/base/span.h"

namespace neuroshard {

using Bytes = std::vector<std::uint8_t>;
using ByteSpan = Span<const std::uint8_t>;
using MutableByteSpan = Span<std::uint8_t>;
using Hash256 = std::array<std::uint8_t, 32>;

inline ByteSpan as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}
template <class T>
ByteSpan as_bytes(Span<T> values) {
  static_assert(std::is_trivially_copyable_v<T>);
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size_bytes()};
}
inline std::string_view as_text(ByteSpan bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Lower-case hexadecimal.
std::string to_hex(ByteSpan bytes);
// InvalidArgument on an odd length or a character outside [0-9a-fA-F].
Expected<Bytes> from_hex(std::string_view text);
// As from_hex, and the length must be exactly 32 bytes.
Expected<Hash256> hash_from_hex(std::string_view text);

// Unaligned little-endian access; T is an unsigned or signed integer. The caller has checked the length.
template <class T>
T load_le(const std::uint8_t* source) {
  std::make_unsigned_t<T> value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value |= static_cast<std::make_unsigned_t<T>>(source[i]) << (8 * i);
  return static_cast<T>(value);
}
template <class T>
void store_le(std::uint8_t* target, T value) {
  const auto bits = static_cast<std::make_unsigned_t<T>>(value);
  for (std::size_t i = 0; i < sizeof(T); ++i) target[i] = static_cast<std::uint8_t>(bits >> (8 * i));
}
template <class T>
void append_le(Bytes& target, T value) {
  const std::size_t at = target.size();
  target.resize(at + sizeof(T));
  store_le(target.data() + at, value);
}

}  // namespace neuroshard
