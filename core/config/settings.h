// Settings: what a person may change about this node. One table says name, type, bounds, default, unit and
// help, and generates the command line's flags, validation, settings.toml, the settings page and the docs.
//
// Precedence: flag > environment (NEUROSHARD_<NAME>) > settings.toml > profile > built-in. A value knows
// where it came from; one that a flag or the environment forces is locked for the life of the process.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/base/span.h"
#include "core/config/network_profile.h"

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
enum class SettingOrigin : std::uint8_t { BuiltIn, Profile, File, Environment, Flag };
std::string_view to_string(SettingType type);
std::string_view to_string(SettingClass setting_class);
std::string_view to_string(SettingOrigin origin);

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

// A number, or the text of all others.
struct SettingValue {
  std::uint64_t number = 0;
  std::string word;
  friend bool operator==(const SettingValue&, const SettingValue&) = default;
};

// Accepts what people write: "512MiB", "2G" (= GiB), "1048576"; "30s", "10min", "2h". InvalidArgument names
// the setting, what was given and what is allowed.
Expected<SettingValue> parse_setting(Setting id, std::string_view text);
// The shortest text that parses back to the value: "2GiB", "10min".
std::string format_setting(Setting id, const SettingValue& value);

// The content of settings.toml: what the user chose, nothing else.
using SettingsFile = std::vector<std::pair<Setting, SettingValue>>;
inline constexpr std::uint64_t max_settings_bytes = 64u << 10;
// Strict: unknown names, wrong types, values out of bounds and tables are errors with a line number. Pure;
// any bytes are safe.  Errors: Corrupt (not TOML), InvalidArgument, Exhausted (too long).
Expected<SettingsFile> parse_settings(ByteSpan toml);
std::string format_settings(const SettingsFile& file);

// The values in force, each with its origin. A value type.
class Settings {
 public:
  Settings();  // built-in defaults

  struct Sources {
    const NetworkProfile* profile = nullptr;
    const SettingsFile* file = nullptr;
    // Gives the value of an environment variable, if it is set. Null function pointer: no environment.
    std::optional<std::string> (*environment)(const std::string& name) = nullptr;
    std::vector<std::pair<Setting, std::string>> flags;
  };
  // InvalidArgument names the variable or flag that is wrong.
  static Expected<Settings> resolve(const Sources& sources);

  std::uint64_t number(Setting id) const { return at(id).value.number; }
  const std::string& word(Setting id) const { return at(id).value.word; }
  const SettingValue& value(Setting id) const { return at(id).value; }
  SettingOrigin origin(Setting id) const { return at(id).origin; }
  bool locked(Setting id) const { return origin(id) >= SettingOrigin::Environment; }

  // As if read from settings.toml. Denied when the value is locked: the message names the flag or variable.
  Expected<void> set(Setting id, const SettingValue& value);

 private:
  struct Entry {
    SettingValue value;
    SettingOrigin origin = SettingOrigin::BuiltIn;
  };
  const Entry& at(Setting id) const { return entries_[static_cast<std::size_t>(id)]; }
  void put(Setting id, SettingValue value, SettingOrigin origin);

  std::array<Entry, setting_count> entries_;
};

// The process's environment, for Sources::environment.
std::optional<std::string> process_environment(const std::string& name);

}  // namespace neuroshard::config
