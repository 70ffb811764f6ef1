// The core's whole table of settings at their defaults, as a running core tells it.
#pragma once

#include <vector>

#include "core/engine/settings.h"
#include "core/node/queries.h"

namespace neuroshard::testing {

inline std::vector<node::SettingEntry> core_settings() {
  std::vector<node::SettingEntry> entries;
  for (const engine::SettingInfo& info : engine::settings_table()) {
    node::SettingEntry entry;
    entry.name = info.name;
    entry.title = info.label;
    entry.help = info.help;
    entry.type = engine::to_string(info.type);
    entry.value = engine::format_setting(info.id, *engine::parse_setting(info.id, info.default_text));
    entry.default_value = info.default_text;
    entry.choices = info.choices;
    entry.unit = info.unit;
    entry.group = info.group;
    entry.origin = engine::to_string(engine::SettingOrigin::BuiltIn);
    entry.least = info.least;
    entry.most = info.most;
    entry.at_restart = info.at_restart;
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace neuroshard::testing
