// The file settings.toml of a data directory.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/base/span.h"
#include "core/config/setting_value.h"

namespace neuroshard::config {

// The content of settings.toml: what the user chose, nothing else.
using SettingsFile = std::vector<std::pair<Setting, SettingValue>>;
inline constexpr std::uint64_t max_settings_bytes = 64u << 10;
// Strict: unknown names, wrong types, values out of bounds and tables are errors with a line number. One entry
// per setting, also if the text has its former name as well. Pure; any bytes are safe. Errors: Corrupt (not
// TOML), InvalidArgument, Exhausted (too long).
Expected<SettingsFile> parse_settings(ByteSpan toml);
std::string format_settings(const SettingsFile& file);

}  // namespace neuroshard::config
