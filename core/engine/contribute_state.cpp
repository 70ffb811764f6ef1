#include "core/engine/contribute_state.h"

#include <nlohmann/json.hpp>

#include "core/config/data_directory.h"
#include "core/node/node.h"

namespace neuroshard::engine {
namespace {

using Json = nlohmann::ordered_json;

Json milliseconds(const std::optional<WallTime>& at) {
  return at ? Json(to_unix_ms(*at)) : Json();
}

std::optional<WallTime> future(const Json& json, const char* key, WallTime now) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_integer()) return std::nullopt;
  const auto ms = found->get<std::int64_t>();
  const std::int64_t from = to_unix_ms(now);
  const std::int64_t most = std::chrono::milliseconds(node::max_snooze).count();
  if (ms <= from || ms - from > most) return std::nullopt;
  return WallTime(std::chrono::milliseconds(ms));
}

contribute::BatteryRule battery_rule(const std::string& word) {
  if (word == "never") return contribute::BatteryRule::Ignore;
  return word == "low" ? contribute::BatteryRule::WhenLow : contribute::BatteryRule::Always;
}

}  // namespace

std::string format_contribute_state(const ContributeState& state) {
  const Json json = {{"snoozed_until_ms", milliseconds(state.snoozed_until)},
                     {"overridden_until_ms", milliseconds(state.overridden_until)}};
  return json.dump() + "\n";
}

Expected<ContributeState> parse_contribute_state(ByteSpan json, WallTime now) {
  const Json parsed = json.size() > max_contribute_state_bytes
                          ? Json(Json::value_t::discarded)
                          : Json::parse(json.begin(), json.end(), nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object())
    return make_error(ErrorCode::Corrupt, "the file is not in the format of contribute.json");
  return ContributeState{future(parsed, "snoozed_until_ms", now), future(parsed, "overridden_until_ms", now)};
}

contribute::Rules contribute_rules(const config::Settings& settings) {
  const auto on = [&settings](config::Setting id) { return settings.word(id) == "on"; };
  const auto number = [&settings](config::Setting id) {
    return static_cast<std::uint32_t>(settings.number(id));
  };
  contribute::Rules rules;
  // config::Settings were checked when they were read: a text that does not parse is a bug.
  rules.schedule = WeekHours::parse(settings.word(config::Setting::Schedule)).value();
  rules.programs = contribute::parse_programs(settings.word(config::Setting::PauseForPrograms)).value();
  rules.battery = battery_rule(settings.word(config::Setting::PauseOnBattery));
  rules.battery_percent = number(config::Setting::BatteryLowPercent);
  rules.metered = on(config::Setting::PauseOnMetered);
  rules.full_screen = on(config::Setting::PauseInFullScreen);
  rules.only_idle = on(config::Setting::OnlyWhenIdle);
  rules.idle_after = std::chrono::seconds(settings.number(config::Setting::IdleAfter));
  rules.hottest_celsius = number(config::Setting::TemperatureLimit);
  rules.least_free_bytes = config::min_free_bytes;
  rules.threads = number(config::Setting::CpuThreads);
  rules.idle_threads = number(config::Setting::IdleCpuThreads);
  return rules;
}

}  // namespace neuroshard::engine
