// The core's whole table of settings at their defaults, as a running core tells it.
#pragma once

#include <vector>

#include "core/config/settings.h"
#include "core/node/queries.h"

namespace neuroshard::testing {

inline std::vector<node::SettingEntry> core_settings() {
  std::vector<node::SettingEntry> entries;
  for (const config::SettingInfo& info : config::settings_table()) {
    node::SettingEntry entry;
    entry.name = info.name;
    entry.title = info.label;
    entry.help = info.help;
    entry.type = config::to_string(info.type);
    entry.value = config::format_setting(info.id, *config::parse_setting(info.id, info.default_text));
    entry.default_value = info.default_text;
    entry.choices = info.choices;
    entry.unit = info.unit;
    entry.group = info.group;
    entry.origin = config::to_string(config::SettingOrigin::BuiltIn);
    entry.least = info.least;
    entry.most = info.most;
    entry.at_restart = info.at_restart;
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace neuroshard::testing
