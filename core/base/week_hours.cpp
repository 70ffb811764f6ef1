#include "core/base/week_hours.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>
#include <vector>

namespace neuroshard {
namespace {

constexpr std::array<std::string_view, WeekHours::days> day_names = {"mon", "tue", "wed", "thu",
                                                                     "fri", "sat", "sun"};

std::string_view trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

// The parts between separators, trimmed.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(trim(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

Error wrong(std::string_view part, const char* wanted) {
  return make_error(
      ErrorCode::InvalidArgument,
      fmt::format("'{}' is not {}; write always, never, or for example \"mon-fri 18-24; sat-sun\"",
                  part.substr(0, 40), wanted));
}

std::optional<int> day_number(std::string_view name) {
  for (std::size_t i = 0; i < day_names.size(); ++i) {
    // "monday" too: at least three letters, and the name must begin as ours.
    if (name.size() >= 3 && name.size() <= 9 && name.substr(0, 3) == day_names[i]) return static_cast<int>(i);
  }
  return std::nullopt;
}

Expected<std::vector<int>> parse_days(std::string_view text) {
  std::vector<int> days;
  for (const std::string_view part : split(text, ',')) {
    if (part == "daily") {
      for (int day = 0; day < WeekHours::days; ++day) days.push_back(day);
      continue;
    }
    const std::size_t dash = part.find('-');
    const auto first = day_number(trim(part.substr(0, dash)));
    const auto last = dash == std::string_view::npos ? first : day_number(trim(part.substr(dash + 1)));
    if (!first || !last) return wrong(part, "a day or a range of days");
    for (int day = *first;; day = (day + 1) % WeekHours::days) {
      days.push_back(day);
      if (day == *last) break;
    }
  }
  return days;
}

std::optional<int> hour_number(std::string_view text) {
  int hour = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), hour);
  if (failed != std::errc() || end != text.data() + text.size() || hour < 0 || hour > WeekHours::hours)
    return std::nullopt;
  return hour;
}

// Allows `hours` ("8-18,22-6") on the days.
Expected<void> allow(std::string_view hours, const std::vector<int>& days, WeekHours& grid) {
  for (const std::string_view part : split(hours, ',')) {
    const std::size_t dash = part.find('-');
    const auto from = hour_number(trim(part.substr(0, dash)));
    const auto to = dash == std::string_view::npos ? std::nullopt : hour_number(trim(part.substr(dash + 1)));
    if (!from || !to || *from == *to || *from == WeekHours::hours)
      return wrong(part, "a range of hours such as 8-18, from 0 to 24");
    const int length = *to > *from ? *to - *from : *to + WeekHours::hours - *from;
    for (const int day : days) {
      for (int i = 0; i < length; ++i) {
        const int hour = *from + i;
        grid.set((day + hour / WeekHours::hours) % WeekHours::days, hour % WeekHours::hours, true);
      }
    }
  }
  return {};
}

// "0-8,18-24"; empty for a whole day.
std::string hours_text(const WeekHours& grid, int day) {
  std::string text;
  for (int hour = 0; hour < WeekHours::hours;) {
    if (!grid.at(day, hour)) {
      ++hour;
      continue;
    }
    const int from = hour;
    while (hour < WeekHours::hours && grid.at(day, hour)) ++hour;
    if (from == 0 && hour == WeekHours::hours) return {};
    text += fmt::format("{}{}-{}", text.empty() ? "" : ",", from, hour);
  }
  return text;
}

// "mon-fri", "tue,thu", "daily".
std::string days_text(const std::vector<int>& days) {
  if (days.size() == WeekHours::days) return "daily";
  std::string text;
  for (std::size_t i = 0; i < days.size();) {
    std::size_t last = i;
    while (last + 1 < days.size() && days[last + 1] == days[last] + 1) ++last;
    if (!text.empty()) text += ",";
    text += day_names[static_cast<std::size_t>(days[i])];
    if (last > i) text += fmt::format("-{}", day_names[static_cast<std::size_t>(days[last])]);
    i = last + 1;
  }
  return text;
}

}  // namespace

WeekHours WeekHours::always() {
  WeekHours grid;
  grid.grid_.set();
  return grid;
}

Expected<WeekHours> WeekHours::parse(std::string_view text) {
  if (text.size() > max_text) {
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("hours of the week take at most {} characters", max_text));
  }
  std::string lower(trim(text));
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  if (lower == "always") return always();
  if (lower == "never") return never();
  WeekHours grid;
  for (const std::string_view entry : split(lower, ';')) {
    // Days end where the first hour begins.
    const std::size_t digit = std::min(entry.find_first_of("0123456789"), entry.size());
    NS_ASSIGN_OR_RETURN(const std::vector<int> days, parse_days(trim(entry.substr(0, digit))));
    NS_RETURN_IF_ERROR(allow(digit == entry.size() ? "0-24" : entry.substr(digit), days, grid));
  }
  return grid;
}

std::string WeekHours::text() const {
  if (is_always()) return "always";
  if (is_never()) return "never";
  std::string text;
  std::bitset<days> written;
  for (int day = 0; day < days; ++day) {
    const auto used = [this](int d) {
      for (int hour = 0; hour < hours; ++hour) {
        if (at(d, hour)) return true;
      }
      return false;
    };
    if (written[static_cast<std::size_t>(day)] || !used(day)) continue;
    const std::string pattern = hours_text(*this, day);
    std::vector<int> same;
    for (int other = day; other < days; ++other) {
      if (!used(other) || hours_text(*this, other) != pattern) continue;
      same.push_back(other);
      written.set(static_cast<std::size_t>(other));
    }
    if (!text.empty()) text += "; ";
    text += days_text(same);
    if (!pattern.empty()) text += " " + pattern;
  }
  return text;
}

}  // namespace neuroshard
