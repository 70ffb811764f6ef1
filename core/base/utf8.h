// Text of any origin as valid UTF-8, for receivers that refuse a message with anything else.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace neuroshard {

inline constexpr std::string_view utf8_replacement = "\xEF\xBF\xBD";  // U+FFFD

// How a text begins.
struct Utf8Start {
  std::size_t bytes = 0;  // of the first character, or of what U+FFFD replaces; at least 1
  bool valid = false;
  bool unfinished = false;  // more bytes may complete it
};

// text is not empty.
Utf8Start utf8_start(std::string_view text);

// U+FFFD in the place of what is no character; cut between characters to at most `most` bytes.
std::string valid_utf8(std::string_view text, std::size_t most = std::string::npos);
// The same with a space in the place of each control character (C0, DEL, C1), for the log, the terminal and
// the pages.
std::string one_line(std::string_view text, std::size_t most = std::string::npos);

}  // namespace neuroshard
