// The settings in force: what a person may change about this node (settings_table.h), and which source gave each
// value.
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

#include "core/base/expected.h"
#include "core/config/network_profile.h"
#include "core/config/setting_value.h"
#include "core/config/settings_file.h"
#include "core/config/settings_table.h"

namespace neuroshard::config {

enum class SettingOrigin : std::uint8_t { BuiltIn, Profile, File, Environment, Flag };
std::string_view to_string(SettingOrigin origin);

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
