#include "app/node/output/output.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "core/platform/process/terminal.h"

namespace neuroshard::app {

Output::Output()
    : stderr_is_terminal_(platform::is_terminal(platform::Stream::Error)),
      width_(platform::terminal_width(80)) {
  const char* no_colour = std::getenv("NO_COLOR");
  colour_ = stderr_is_terminal_ && (no_colour == nullptr || *no_colour == '\0');
}

void Output::raw(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    writable_ = false;
}

void Output::line(std::string_view text) {
  if (json_) return;
  raw(std::string(text) + '\n');
}

void Output::json_line(const nlohmann::ordered_json& object) {
  if (!json_) return;
  raw(object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n');
}

void Output::note(std::string_view text) {
  if (json_ || quiet_) return;
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fputc('\n', stderr);
  std::fflush(stderr);
}

void Output::json_note(const nlohmann::ordered_json& object) {
  if (!json_) return;
  once(object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

void Output::once(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fputc('\n', stderr);
  std::fflush(stderr);
}

void Output::error(const Error& error) {
  std::string text;
  if (json_) {
    const nlohmann::ordered_json object = {{"error",
                                            {{"code", std::string(to_string(error.code))},
                                             {"message", error.message},
                                             {"context", error.context}}}};
    text = object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
  } else {
    text = fmt::format("{}neuroshardd:{} {}\n", colour_ ? "\x1b[1;31m" : "", colour_ ? "\x1b[0m" : "",
                       error.describe());
  }
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace neuroshard::app
