#include "core/base/version.h"

#include <algorithm>
#include <charconv>

namespace neuroshard {
namespace {

constexpr std::uint32_t max_number = 999'999;
constexpr std::size_t max_build = 40;

bool is_build_character(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.';
}

// A number without leading zeros at the beginning of the text, which loses it.
bool take_number(std::string_view* text, std::uint32_t* number) {
  const char* begin = text->data();
  const auto [end, error] = std::from_chars(begin, begin + text->size(), *number);
  const auto digits = static_cast<std::size_t>(end - begin);
  if (error != std::errc() || *number > max_number || (digits > 1 && *begin == '0')) return false;
  text->remove_prefix(digits);
  return true;
}

bool take_character(std::string_view* text, char wanted) {
  if (text->empty() || text->front() != wanted) return false;
  text->remove_prefix(1);
  return true;
}

}  // namespace

Expected<Version> Version::parse(std::string_view text) {
  Version version;
  std::string_view rest = text;
  const bool numbered = take_number(&rest, &version.number[0]) && take_character(&rest, '.') &&
                        take_number(&rest, &version.number[1]) && take_character(&rest, '.') &&
                        take_number(&rest, &version.number[2]);
  if (numbered && rest.empty()) return version;
  if (numbered && take_character(&rest, '+') && !rest.empty() && rest.size() <= max_build &&
      std::all_of(rest.begin(), rest.end(), is_build_character)) {
    version.build = rest;
    return version;
  }
  return make_error(ErrorCode::InvalidArgument, "a version is three numbers, such as 0.2.0");
}

std::string Version::text() const {
  std::string text =
      std::to_string(number[0]) + '.' + std::to_string(number[1]) + '.' + std::to_string(number[2]);
  return build.empty() ? text : text + '+' + build;
}

}  // namespace neuroshard
