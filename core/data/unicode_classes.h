// The three classes of characters that the GPT-2 split tells apart, from the categories of utf8proc (Unicode
// 15).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace neuroshard::data {

enum class CharacterClass : std::uint8_t {
  Other,   // everything else, and every byte that is not part of valid UTF-8
  Letter,  // \p{L}
  Number,  // \p{N}
  Space,   // \s: the property White_Space
};

struct Character {
  CharacterClass kind = CharacterClass::Other;
  std::uint8_t length = 1;  // bytes, 1 to 4
};

// The character that starts at `at`; at < end. A byte that does not start a valid sequence (truncated,
// overlong, surrogate, beyond U+10FFFF) is a character of its own of class Other.  Threads: any.
Character read_multibyte_character(const std::uint8_t* at, const std::uint8_t* end);

namespace detail {
constexpr CharacterClass ascii_class(unsigned byte) {
  if ((byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z')) return CharacterClass::Letter;
  if (byte >= '0' && byte <= '9') return CharacterClass::Number;
  if (byte == ' ' || (byte >= '\t' && byte <= '\r')) return CharacterClass::Space;
  return CharacterClass::Other;
}
constexpr std::array<CharacterClass, 128> make_ascii_classes() {
  std::array<CharacterClass, 128> classes{};
  for (unsigned byte = 0; byte < 128; ++byte) classes[byte] = ascii_class(byte);
  return classes;
}
inline constexpr std::array<CharacterClass, 128> ascii_classes = make_ascii_classes();
}  // namespace detail

inline Character read_character(const std::uint8_t* at, const std::uint8_t* end) {
  if (*at < 0x80) return {detail::ascii_classes[*at], 1};
  return read_multibyte_character(at, end);
}

}  // namespace neuroshard::data
