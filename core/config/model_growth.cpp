#include "core/config/model_growth.h"

#include <fmt/format.h>

#include <charconv>

namespace neuroshard::config {
namespace {

constexpr std::size_t most_shown = 80;  // characters of a wrong text

// Takes a number and what follows it from the front of the text; '\0': the end follows.
bool take(std::string_view& text, std::uint64_t& value, char then) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (then == '\0') return text.empty();
  if (text.empty() || text.front() != then) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::string to_text(const ModelGrowth& size) {
  return fmt::format("{}x{}@{}/{}", size.layers, size.hidden, size.member_tiers, size.network_tiers);
}

Expected<ModelGrowth> parse_model_growth(std::string_view text) {
  ModelGrowth size;
  std::string_view rest = text;
  // The comparison refuses leading zeros.
  if (take(rest, size.layers, 'x') && take(rest, size.hidden, '@') && take(rest, size.member_tiers, '/') &&
      take(rest, size.network_tiers, '\0') && to_text(size) == text)
    return size;
  return make_error(
      ErrorCode::InvalidArgument,
      fmt::format("holds '{}', which is not a size like 6x192@4/12: layers, width, and the memory "
                  "that one member and that all members have to offer, in 500 MB",
                  text.substr(0, most_shown)));
}

}  // namespace neuroshard::config
