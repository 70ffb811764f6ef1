#include "core/base/base64url.h"

namespace neuroshard {
namespace {

constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

}  // namespace

std::string to_base64url(ByteSpan bytes) {
  std::string text;
  text.reserve((bytes.size() * 4 + 2) / 3);
  std::uint32_t held = 0;
  int bits = 0;
  for (const std::uint8_t byte : bytes) {
    held = (held << 8 | byte) & 0xffff;
    for (bits += 8; bits >= 6; bits -= 6) text += alphabet[held >> (bits - 6) & 63];
  }
  if (bits > 0) text += alphabet[held << (6 - bits) & 63];
  return text;
}

Expected<Bytes> from_base64url(std::string_view text) {
  if (text.size() % 4 == 1)
    return make_error(ErrorCode::InvalidArgument, "a character of the base64 text is missing");
  Bytes bytes;
  bytes.reserve(text.size() * 3 / 4);
  std::uint32_t held = 0;
  int bits = 0;
  for (const char c : text) {
    const std::size_t value = alphabet.find(c);
    if (value == std::string_view::npos)
      return make_error(ErrorCode::InvalidArgument, "a character that base64 does not have");
    held = (held << 6 | static_cast<std::uint32_t>(value)) & 0xffff;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push_back(static_cast<std::uint8_t>(held >> bits));
  }
  if ((held & ((1u << bits) - 1)) != 0)
    return make_error(ErrorCode::InvalidArgument, "the base64 text does not end as it should");
  return bytes;
}

}  // namespace neuroshard
