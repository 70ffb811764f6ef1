// The value of one setting (settings_table.h), and how people write it on the command line, in the environment and
// in settings.toml.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/expected.h"
#include "core/config/settings_table.h"

namespace neuroshard::config {

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

}  // namespace neuroshard::config
