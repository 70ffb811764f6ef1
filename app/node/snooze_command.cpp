// neuroshardd snooze: a pause that ends by itself.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <ctime>
#include <nlohmann/json.hpp>

#include "app/node/core_client.h"
#include "app/node/snapshot_text.h"

namespace neuroshard::app {
namespace {

constexpr int morning_hour = 6;  // what "tomorrow" means

// Until 6:00 of the next day in the user's time zone.
std::chrono::seconds until_tomorrow(WallTime now) {
  const std::time_t seconds =
      std::chrono::system_clock::to_time_t(std::chrono::floor<std::chrono::seconds>(now));
  std::tm local = fmt::localtime(seconds);
  local.tm_mday += 1;
  local.tm_hour = morning_hour;
  local.tm_min = local.tm_sec = 0;
  local.tm_isdst = -1;
  return std::chrono::seconds(std::mktime(&local) - seconds);
}

Expected<std::chrono::seconds> parse_duration(const std::string& text, WallTime now) {
  if (text == "tomorrow") return until_tomorrow(now);
  std::uint32_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const std::uint64_t factor = unit == "s" ? 1 : unit == "min" ? 60 : unit == "h" ? 3600 : 0;
  const std::uint64_t seconds = number * factor;
  if (failed != std::errc() || seconds == 0 ||
      seconds > static_cast<std::uint64_t>(node::max_snooze.count())) {
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("'{}' is no time to snooze: 15min, 1h, 4h, tomorrow, or another number of s, "
                    "min or h up to a week",
                    text.substr(0, 40)));
  }
  return std::chrono::seconds(seconds);
}

Expected<void> snooze(const std::string& text, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const std::chrono::seconds duration, parse_duration(text, context.clock.wall_now()));
  NS_ASSIGN_OR_RETURN(const auto client, CoreClient::attach(context));
  NS_RETURN_IF_ERROR(client->command([duration](node::Node& node) { return node.snooze(duration); }));
  const auto view = client->node().snapshot();
  context.output.json_line(snapshot_json(*view));
  context.output.line(state_text(*view));
  return {};
}

}  // namespace

void add_snooze_command(CLI::App& root, CommandContext& context) {
  auto duration = std::make_shared<std::string>();
  CLI::App& command = add_command(root, "snooze", "Pause the running node for a while",
                                  {"neuroshardd snooze 15min", "neuroshardd snooze tomorrow"});
  command
      .add_option("duration", *duration, "15min, 1h, 4h, tomorrow (until 6:00), or any number of s, min, h")
      ->required();
  set_body(command, context, [duration, &context] { return snooze(*duration, context); });
}

}  // namespace neuroshard::app
