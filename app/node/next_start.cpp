#include "app/node/next_start.h"

namespace neuroshard::app {
namespace {

// Takes away each "NAME VALUE" and "NAME=VALUE".
std::vector<std::string> without_option(const std::vector<std::string>& arguments, std::string_view name) {
  const std::string beginning = std::string(name) + "=";
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == name) {
      ++i;  // its value
    } else if (arguments[i].rfind(beginning, 0) != 0) {
      kept.push_back(arguments[i]);
    }
  }
  return kept;
}

}  // namespace

bool starts_anew(const Ending& ending, const CancelToken& stop) {
  return !ending.next.empty() && !stop.cancelled() && !ending.stopped.token().cancelled();
}

std::vector<std::string> arguments_of_next_start(const std::vector<std::string>& arguments,
                                                 const EarlierStart& before) {
  std::vector<std::string> next = before.prepared ? without_option(arguments, "--text") : arguments;
  return before.joined ? without_option(next, "--join") : next;
}

}  // namespace neuroshard::app
