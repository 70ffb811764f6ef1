#include "core/base/bytes.h"

#include <algorithm>

namespace neuroshard {
namespace {

int nibble(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string to_hex(ByteSpan bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (std::uint8_t b : bytes) {
    text.push_back(digits[b >> 4]);
    text.push_back(digits[b & 15]);
  }
  return text;
}

Expected<Bytes> from_hex(std::string_view text) {
  if (text.size() % 2 != 0)
    return make_error(ErrorCode::InvalidArgument, "hexadecimal text has an odd length");
  Bytes bytes(text.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const int high = nibble(text[2 * i]);
    const int low = nibble(text[2 * i + 1]);
    // The text may be a secret: the message does not repeat it.
    if (high < 0 || low < 0) return make_error(ErrorCode::InvalidArgument, "not a hexadecimal number");
    bytes[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return bytes;
}

Expected<Hash256> hash_from_hex(std::string_view text) {
  if (text.size() != 64) return make_error(ErrorCode::InvalidArgument, "expected 64 hexadecimal characters");
  NS_ASSIGN_OR_RETURN(const Bytes bytes, from_hex(text));
  Hash256 hash;
  std::copy(bytes.begin(), bytes.end(), hash.begin());
  return hash;
}

}  // namespace neuroshard
