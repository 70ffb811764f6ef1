#include "core/data/pretokenizer.h"

#include <bit>

#include "core/data/unicode_classes.h"

namespace neuroshard::data {
namespace {

using Cursor = const std::uint8_t*;

// 's 't 're 've 'm 'll 'd; 0 if none stands here. at[0] is the apostrophe.
std::size_t contraction(Cursor at, Cursor end) {
  const auto left = end - at;
  if (left < 2) return 0;
  switch (at[1]) {
    case 's':
    case 't':
    case 'm':
    case 'd': return 2;
    case 'r':
    case 'v': return left >= 3 && at[2] == 'e' ? 3 : 0;
    case 'l': return left >= 3 && at[2] == 'l' ? 3 : 0;
    default: return 0;
  }
}

// How many of the eight bytes at `at`, from the first on, are ASCII letters: byte-wise comparisons in one
// register (Warren, Hacker's Delight, 6-1).
std::size_t leading_letters(Cursor at) {
  constexpr std::uint64_t ones = 0x0101010101010101ull;
  constexpr std::uint64_t high = 0x80 * ones;
  const std::uint64_t bytes = load_le<std::uint64_t>(at);
  const std::uint64_t lower = (bytes | 0x20 * ones) & ~high;
  const std::uint64_t from_a = lower + (0x80 - 'a') * ones;      // high bit: at least 'a'
  const std::uint64_t past_z = lower + (0x80 - 'z' - 1) * ones;  // high bit: beyond 'z'
  const std::uint64_t others = ~(from_a & ~past_z & ~bytes) & high;
  return static_cast<std::size_t>(std::countr_zero(others)) / 8;
}

// The end of the run of characters of one class.
Cursor skip_class(Cursor at, Cursor end, CharacterClass kind) {
  if (kind == CharacterClass::Letter) {
    while (end - at >= 8) {
      const std::size_t letters = leading_letters(at);
      at += letters;
      if (letters < 8) break;
    }
  }
  while (at != end) {
    if (*at < 0x80) {
      if (detail::ascii_classes[*at] != kind) return at;
      ++at;
    } else {
      const Character next = read_multibyte_character(at, end);
      if (next.kind != kind) return at;
      at += next.length;
    }
  }
  return at;
}

// \s+(?!\S)|\s+ : all white space at the end of the text, else all but its last character, unless that is
// all.
std::size_t white_space(Cursor at, Cursor end) {
  Cursor last = at;
  Cursor stop = at;
  while (stop != end) {
    const Character next = read_character(stop, end);
    if (next.kind != CharacterClass::Space) break;
    last = stop;
    stop += next.length;
  }
  const Cursor word_end = stop == end || last == at ? stop : last;
  return static_cast<std::size_t>(word_end - at);
}

}  // namespace

std::size_t first_word(Cursor at, Cursor end) {
  if (at == end) return 0;
  if (*at == '\'') {
    if (const std::size_t length = contraction(at, end)) return length;
  }
  Cursor body = at;
  if (*at == ' ' && end - at > 1) ++body;
  Character first = read_character(body, end);
  if (first.kind == CharacterClass::Space) return white_space(at, end);
  return static_cast<std::size_t>(skip_class(body + first.length, end, first.kind) - at);
}

std::size_t find_word_cut(ByteSpan text, std::size_t limit) {
  if (limit >= text.size()) return text.size();
  const auto is_space = [](std::uint8_t byte) {
    return byte < 0x80 && detail::ascii_classes[byte] == CharacterClass::Space;
  };
  for (std::size_t at = limit; at > 0; --at) {
    const std::uint8_t before = text[at - 1];
    if (is_space(text[at]) && before < 0x80 && !is_space(before)) return at;
  }
  return 0;
}

}  // namespace neuroshard::data
