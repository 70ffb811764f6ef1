// Converts a model's bytes to valid UTF-8 in pieces: keeps an incomplete character for the next piece, and
// replaces invalid bytes with U+FFFD.
#pragma once

#include <string>
#include <string_view>

namespace neuroshard::engine {

class Utf8Stream {
 public:
  // The complete characters so far.
  std::string add(std::string_view bytes);
  // The remaining bytes, at the end of the text.
  std::string finish();

 private:
  std::string waiting_;  // at most three bytes
};

}  // namespace neuroshard::engine
