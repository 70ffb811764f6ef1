#include "core/platform/socket/default_gateway.h"

#include <charconv>
#include <limits>
#include <optional>
#include <vector>

#include "core/platform/sensor/detail/small_file.h"

namespace neuroshard::platform {
namespace {

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  constexpr std::string_view blank = " \t\r";
  for (std::size_t at = line.find_first_not_of(blank); at != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(blank, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(blank, end);
  }
  return words;
}

template <class T>
std::optional<T> number(std::string_view text, int base) {
  T value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Expected<IpAddress> gateway_in_route_table(std::string_view table) {
  constexpr std::uint32_t flag_up = 1, flag_gateway = 2;  // linux/route.h
  std::optional<std::uint32_t> best;
  std::uint32_t best_metric = std::numeric_limits<std::uint32_t>::max();
  while (!table.empty()) {
    const std::size_t end = std::min(table.find('\n'), table.size());
    // Iface Destination Gateway Flags RefCnt Use Metric Mask …; addresses in hexadecimal, lowest byte first.
    const auto words = words_of(table.substr(0, end));
    table.remove_prefix(std::min(end + 1, table.size()));
    if (words.size() < 8) continue;
    const auto destination = number<std::uint32_t>(words[1], 16),
               gateway = number<std::uint32_t>(words[2], 16), flags = number<std::uint32_t>(words[3], 16),
               metric = number<std::uint32_t>(words[6], 10), mask = number<std::uint32_t>(words[7], 16);
    if (!destination || !gateway || !flags || !metric || !mask) continue;
    const bool leads_out = *destination == 0 && *mask == 0 && (*flags & flag_up) != 0 &&
                           (*flags & flag_gateway) != 0 && *gateway != 0;
    if (!leads_out || (best && *metric >= best_metric)) continue;
    best = *gateway;
    best_metric = *metric;
  }
  if (!best)
    return make_error(ErrorCode::NotFound, "this machine has no IPv4 default route, so no router was found");
  const auto byte = [&](int i) { return static_cast<std::uint8_t>(*best >> (8 * i)); };
  return IpAddress::v4(byte(0), byte(1), byte(2), byte(3));
}

Expected<IpAddress> default_gateway() {
  return gateway_in_route_table(detail::read_small_file("/proc/net/route"));
}

}  // namespace neuroshard::platform
