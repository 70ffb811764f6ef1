#include "core/config/detail/quantity.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <limits>
#include <utility>

#include "core/base/span.h"

namespace neuroshard::config::detail {
namespace {

constexpr std::uint64_t kib = 1024, mib = kib * 1024, gib = mib * 1024, tib = gib * 1024;

struct Unit {
  const char* suffix;  // lower case
  std::uint64_t factor;
};
constexpr std::array<Unit, 14> byte_units{{{"", 1},
                                           {"b", 1},
                                           {"k", kib},
                                           {"kb", kib},
                                           {"kib", kib},
                                           {"m", mib},
                                           {"mb", mib},
                                           {"mib", mib},
                                           {"g", gib},
                                           {"gb", gib},
                                           {"gib", gib},
                                           {"t", tib},
                                           {"tb", tib},
                                           {"tib", tib}}};
constexpr std::array<Unit, 8> second_units{
    {{"", 1}, {"s", 1}, {"sec", 1}, {"m", 60}, {"min", 60}, {"h", 3600}, {"d", 86'400}, {"day", 86'400}}};
constexpr std::array<Unit, 1> no_units{{{"", 1}}};

Span<const Unit> units_of(Quantity kind) {
  if (kind == Quantity::Bytes) return {byte_units.data(), byte_units.size()};
  if (kind == Quantity::Seconds) return {second_units.data(), second_units.size()};
  return {no_units.data(), no_units.size()};
}

}  // namespace

std::optional<std::uint64_t> parse_quantity(Quantity kind, std::string_view lower_case) {
  std::uint64_t number = 0;
  const char* const text_end = lower_case.data() + lower_case.size();
  const auto [end, failed] = std::from_chars(lower_case.data(), text_end, number);
  if (failed != std::errc() || lower_case.empty()) return std::nullopt;
  std::string_view suffix(end, static_cast<std::size_t>(text_end - end));
  while (!suffix.empty() && std::isspace(static_cast<unsigned char>(suffix.front()))) suffix.remove_prefix(1);
  for (const Unit& unit : units_of(kind)) {
    if (suffix != unit.suffix) continue;
    if (number > std::numeric_limits<std::uint64_t>::max() / unit.factor) return std::nullopt;
    return number * unit.factor;
  }
  return std::nullopt;
}

std::string format_quantity(Quantity kind, std::uint64_t number) {
  if (number != 0 && kind == Quantity::Bytes) {
    for (const auto& [factor, suffix] :
         {std::pair{tib, "TiB"}, std::pair{gib, "GiB"}, std::pair{mib, "MiB"}, std::pair{kib, "KiB"}}) {
      if (number % factor == 0) return fmt::format("{}{}", number / factor, suffix);
    }
  }
  if (number != 0 && kind == Quantity::Seconds) {
    for (const auto& [factor, suffix] :
         {std::pair{std::uint64_t{3600}, "h"}, std::pair{std::uint64_t{60}, "min"}}) {
      if (number % factor == 0) return fmt::format("{}{}", number / factor, suffix);
    }
    return fmt::format("{}s", number);
  }
  return fmt::format("{}", number);
}

}  // namespace neuroshard::config::detail
