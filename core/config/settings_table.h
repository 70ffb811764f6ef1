// The settings of a node, as one table: name, type, bounds, default, unit and help. The command line's flags, the
// validation, settings.toml, the settings page and the docs follow from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/expected.h"
#include "core/base/span.h"

namespace neuroshard::config {

// Order of the table; names are the table's. New ones go before Count, anywhere: nothing stores the number.
enum class Setting : std::uint8_t {
  CpuThreads,
  MemoryLimit,
  DiskLimit,
  Device,
  Precision,
  MaxMicroBatch,
  GenerationShare,
  Part,
  CheckpointMinInterval,
  CheckpointEverySteps,
  CheckpointKeepLast,
  CheckpointDailyWriteBudget,
  EvalIntervalSteps,
  EvalTokens,
  ShardTokens,
  LogLevel,
  Contribute,
  Schedule,
  PauseOnBattery,
  BatteryLowPercent,
  PauseOnMetered,
  PauseInFullScreen,
  PauseForPrograms,
  OnlyWhenIdle,
  IdleAfter,
  IdleCpuThreads,
  TemperatureLimit,
  ListenPort,
  OpenPort,
  RelayForOthers,
  TurnServer,
  TurnUser,
  TurnPasswordFile,
  ServeFiles,
  LocalDiscovery,
  MainlineRendezvous,
  UploadLimit,
  DownloadLimit,
  MonthlyData,
  Http,
  HttpPort,
  HttpKeyFile,
  Count,
};
inline constexpr std::size_t setting_count = static_cast<std::size_t>(Setting::Count);

enum class SettingType : std::uint8_t {
  Integer,
  Bytes,
  Seconds,
  Choice,
  Hours,     // of the week, core/base/week_hours.h
  Programs,  // names, separated by commas
  Text,      // one line of printable ASCII without " and \; empty = none
  Path,      // the same, of a file
};
// Its values are numbers; else texts.
bool is_number(SettingType type);

enum class SettingClass : std::uint8_t {
  Setting,  // a preference
  Limit,    // a promise to the user: hard, obeyed within one step
};
std::string_view to_string(SettingType type);
std::string_view to_string(SettingClass setting_class);

struct SettingInfo {
  Setting id;
  const char*
      name;  // snake_case in the file; --with-dashes as a flag; NEUROSHARD_UPPER_CASE in the environment
  SettingType type;
  SettingClass setting_class;
  std::uint64_t least, most;  // of numbers; bytes and seconds in their unit
  const char* default_text;   // as a person would write it: "0", "50GiB", "fp32"
  const char* choices;        // of a Choice: "fp32|bf16"; else ""
  const char* help;           // one sentence, says what 0 means
  const char* label;          // two to four words for a settings page
  const char* group;          // heading there: one of node/queries.h, SettingEntry::group
  const char* unit;           // of a number, as shown beside it: "B", "s"; else ""
  bool at_restart;            // takes effect when the core is started again
};
Span<const SettingInfo> settings_table();
const SettingInfo& setting_info(Setting id);
// NotFound suggests the nearest name.
Expected<Setting> find_setting(std::string_view name);
std::string flag_name(const SettingInfo& info);         // "--cpu-threads"
std::string environment_name(const SettingInfo& info);  // "NEUROSHARD_CPU_THREADS"
std::string environment_name(const char* setting);      // of a former name, too

}  // namespace neuroshard::config
