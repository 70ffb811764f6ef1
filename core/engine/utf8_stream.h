// Bytes that a model writes, as valid UTF-8 in pieces: a character that is not complete yet waits, and what
// can't become one is shown as U+FFFD.
#pragma once

#include <string>
#include <string_view>

namespace neuroshard::engine {

class Utf8Stream {
 public:
  // The complete characters so far.
  std::string add(std::string_view bytes);
  // The rest, at the end of the text.
  std::string finish();

 private:
  std::string waiting_;  // at most three bytes
};

}  // namespace neuroshard::engine
