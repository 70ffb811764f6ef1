#include "core/engine/utf8_stream.h"

#include <utility>

#include "core/base/utf8.h"

namespace neuroshard::engine {

std::string Utf8Stream::add(std::string_view bytes) {
  std::string text = std::exchange(waiting_, {});
  text += bytes;
  std::string shown;
  std::string_view rest = text;
  while (!rest.empty()) {
    const Utf8Start next = utf8_start(rest);
    if (next.unfinished) {
      waiting_ = rest;
      break;
    }
    shown += next.valid ? rest.substr(0, next.bytes) : utf8_replacement;
    rest.remove_prefix(next.bytes);
  }
  return shown;
}

std::string Utf8Stream::finish() {
  return std::exchange(waiting_, {}).empty() ? std::string() : std::string(utf8_replacement);
}

}  // namespace neuroshard::engine
