#include "core/platform/sensor/detail/small_file.h"

#include <charconv>
#include <fstream>

namespace neuroshard::platform::detail {
namespace {

constexpr std::size_t max_small_file = 1u << 20;

}  // namespace

std::string read_small_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  char block[4096];
  while (file && text.size() < max_small_file) {
    file.read(block, sizeof(block));
    text.append(block, static_cast<std::size_t>(file.gcount()));
  }
  return text;
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> number_after(std::string_view text, std::string_view key) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (line.substr(0, key.size()) == key) return parse_number(line.substr(key.size()));
    at = end + 1;
  }
  return std::nullopt;
}

}  // namespace neuroshard::platform::detail
