#include "core/engine/utf8_stream.h"

#include <utility>

namespace neuroshard::engine {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

struct Sequence {
  std::size_t bytes = 0;  // of a whole character, or of the bytes to replace
  bool valid = false;
  bool unfinished = false;  // more bytes may complete it
};

// The character at the beginning of text (Unicode 15, table 3-7). text is not empty.
Sequence first_of(std::string_view text) {
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

}  // namespace

std::string Utf8Stream::add(std::string_view bytes) {
  std::string text = std::exchange(waiting_, {});
  text += bytes;
  std::string shown;
  std::string_view rest = text;
  while (!rest.empty()) {
    const Sequence next = first_of(rest);
    if (next.unfinished) {
      waiting_ = rest;
      break;
    }
    shown += next.valid ? rest.substr(0, next.bytes) : replacement;
    rest.remove_prefix(next.bytes);
  }
  return shown;
}

std::string Utf8Stream::finish() {
  return std::exchange(waiting_, {}).empty() ? std::string() : std::string(replacement);
}

}  // namespace neuroshard::engine
