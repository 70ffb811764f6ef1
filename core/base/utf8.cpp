#include "core/base/utf8.h"

namespace neuroshard {

// Unicode 15, table 3-7.
Utf8Start utf8_start(std::string_view text) {
  const auto at = [&text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = at(0);
  if (lead < 0x80) return {1, true, false};
  const std::size_t wanted = lead >= 0xC2 && lead <= 0xDF   ? 2
                             : (lead & 0xF0) == 0xE0        ? 3
                             : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                            : 0;
  if (wanted == 0) return {1, false, false};
  for (std::size_t i = 1; i < wanted; ++i) {
    if (i == text.size()) return {i, false, true};
    unsigned char least = 0x80, most = 0xBF;
    if (i == 1 && lead == 0xE0) least = 0xA0;
    if (i == 1 && lead == 0xED) most = 0x9F;
    if (i == 1 && lead == 0xF0) least = 0x90;
    if (i == 1 && lead == 0xF4) most = 0x8F;
    if (at(i) < least || at(i) > most) return {i, false, false};
  }
  return {wanted, true, false};
}

std::string valid_utf8(std::string_view text, std::size_t most) {
  std::string result;
  while (!text.empty()) {
    const Utf8Start next = utf8_start(text);
    const std::string_view character = next.valid ? text.substr(0, next.bytes) : utf8_replacement;
    if (character.size() > most - result.size()) break;
    result += character;
    text.remove_prefix(next.bytes);
  }
  return result;
}

std::string one_line(std::string_view text, std::size_t most) {
  const std::string valid = valid_utf8(text, most);
  const auto at = [&valid](std::size_t i) { return static_cast<unsigned char>(valid[i]); };
  std::string result;
  for (std::size_t i = 0; i < valid.size(); ++i) {
    const bool c1 = at(i) == 0xC2 && at(i + 1) < 0xA0;  // U+0080 to U+009F
    result += c1 || at(i) < 0x20 || at(i) == 0x7f ? ' ' : valid[i];
    if (c1) ++i;
  }
  return result;
}

}  // namespace neuroshard
