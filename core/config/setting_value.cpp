#include "core/config/setting_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/base/week_hours.h"
#include "core/config/detail/quantity.h"
#include "core/contribute/rules.h"
#include "core/platform/socket/resolve.h"

namespace neuroshard::config {
namespace {

constexpr std::size_t max_programs_text = 2048;
constexpr std::size_t max_text = 508;  // of a TURN user's name (RFC 8489 §14.3), and enough for a path

using T = SettingType;

detail::Quantity quantity_of(SettingType type) {
  if (type == T::Bytes) return detail::Quantity::Bytes;
  return type == T::Seconds ? detail::Quantity::Seconds : detail::Quantity::Count;
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return result;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

// The permitted values, for error messages.
std::string allowed(const SettingInfo& info) {
  const auto bound = [&info](std::uint64_t number) { return format_setting(info.id, {number, {}}); };
  switch (info.type) {
    case T::Choice: return fmt::format("one of {}", info.choices);
    case T::Bytes:
      return fmt::format("a size like 512MiB or 4GiB, between {} and {}", bound(info.least),
                         bound(info.most));
    case T::Seconds:
      return fmt::format("a time like 30s or 10min, between {} and {}", bound(info.least), bound(info.most));
    case T::Hours: return "hours of the week";
    case T::Programs: return "names of programs";
    case T::Text:
    case T::Path: return "one line";
    case T::Integer: break;
  }
  return fmt::format("a whole number between {} and {}", info.least, info.most);
}

Error wrong_value(const SettingInfo& info, std::string_view text) {
  return make_error(ErrorCode::InvalidArgument, fmt::format("{} can't be '{}'; it must be {}", info.name,
                                                            text.substr(0, 100), allowed(info)));
}

bool is_choice(const SettingInfo& info, std::string_view word) {
  std::string_view rest = info.choices;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('|'), rest.size());
    if (rest.substr(0, end) == word) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

// As it is: settings.toml is written without escapes and read as ASCII.
Expected<SettingValue> parse_line(const SettingInfo& info, std::string_view text) {
  const auto refused = [&info](std::string why) {
    return make_error(ErrorCode::InvalidArgument, fmt::format("{}: {}", info.name, why));
  };
  if (text.size() > max_text) return refused(fmt::format("it takes at most {} characters", max_text));
  const bool sound = std::all_of(text.begin(), text.end(),
                                 [](char c) { return c >= 0x20 && c <= 0x7e && c != '"' && c != '\\'; });
  if (!sound) return refused("only letters, digits and signs of ASCII, without \" and \\");
  if (info.id == Setting::TurnServer && !text.empty())
    if (const auto place = platform::check_place(std::string(text)); !place.ok())
      return refused(place.error().message);
  return SettingValue{0, std::string(text)};
}

// In its regular form, so that equal values are equal texts.
Expected<SettingValue> parse_text(const SettingInfo& info, std::string_view text) {
  const auto named = [&info](Error error) {
    error.message = fmt::format("{}: {}", info.name, error.message);
    return error;
  };
  if (info.type == T::Hours) {
    auto hours = WeekHours::parse(text);
    if (!hours.ok()) return named(std::move(hours).error());
    return SettingValue{0, hours->text()};
  }
  if (text.size() > max_programs_text) {
    return named(
        make_error(ErrorCode::InvalidArgument,
                   fmt::format("a list of programs takes at most {} characters", max_programs_text)));
  }
  const auto programs = contribute::parse_programs(text);
  if (!programs.ok()) return named(programs.error());
  std::string joined;
  for (const std::string& name : *programs) joined += (joined.empty() ? "" : ", ") + name;
  return SettingValue{0, joined};
}

}  // namespace

Expected<SettingValue> parse_setting(Setting id, std::string_view text) {
  const SettingInfo& info = setting_info(id);
  const std::string_view trimmed = trim(text);
  if (info.type == T::Hours || info.type == T::Programs) return parse_text(info, trimmed);
  if (info.type == T::Text || info.type == T::Path) return parse_line(info, trimmed);
  if (trimmed.size() > 64) return wrong_value(info, trimmed);
  const std::string word = lower(trimmed);
  if (info.type == T::Choice) {
    if (!is_choice(info, word)) return wrong_value(info, trimmed);
    return SettingValue{0, word};
  }
  const auto number = detail::parse_quantity(quantity_of(info.type), word);
  if (!number || *number < info.least || *number > info.most) return wrong_value(info, trimmed);
  return SettingValue{*number, {}};
}

std::string format_setting(Setting id, const SettingValue& value) {
  const SettingInfo& info = setting_info(id);
  if (!is_number(info.type)) return value.word;
  return detail::format_quantity(quantity_of(info.type), value.number);
}

}  // namespace neuroshard::config
