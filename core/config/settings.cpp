#include "core/config/settings.h"

#include <fmt/format.h>

#include <cstdlib>

#include "core/base/check.h"
#include "core/config/former_names.h"

namespace neuroshard::config {

std::string_view to_string(SettingOrigin origin) {
  switch (origin) {
    case SettingOrigin::BuiltIn: return "built-in";
    case SettingOrigin::Profile: return "profile";
    case SettingOrigin::File: return "settings.toml";
    case SettingOrigin::Environment: return "environment";
    case SettingOrigin::Flag: return "flag";
  }
  return "unknown";
}

Settings::Settings() {
  for (const SettingInfo& info : settings_table()) {
    auto value = parse_setting(info.id, info.default_text);
    NS_CHECK(value.ok());
    put(info.id, std::move(*value), SettingOrigin::BuiltIn);
  }
}

void Settings::put(Setting id, SettingValue value, SettingOrigin origin) {
  entries_[static_cast<std::size_t>(id)] = {std::move(value), origin};
}

Expected<Settings> Settings::resolve(const Sources& sources) {
  Settings settings;
  if (sources.profile != nullptr) {
    const DirectoryPart& directory = sources.profile->directory;
    settings.put(Setting::CheckpointMinInterval, {directory.checkpoint_min_interval, {}},
                 SettingOrigin::Profile);
  }
  if (sources.file != nullptr) {
    for (const auto& [id, value] : *sources.file) settings.put(id, value, SettingOrigin::File);
  }
  if (sources.environment != nullptr) {
    std::vector<std::pair<Setting, std::string>> variables;
    for (const FormerName& former : former_names)
      variables.emplace_back(former.id, environment_name(former.name));
    for (const SettingInfo& info : settings_table()) variables.emplace_back(info.id, environment_name(info));
    for (const auto& [id, variable] : variables) {
      const auto text = sources.environment(variable);
      if (!text) continue;
      auto value = parse_setting(id, *text);
      if (!value.ok()) return std::move(value).error().with_context("environment variable " + variable);
      settings.put(id, std::move(*value), SettingOrigin::Environment);
    }
  }
  for (const auto& [id, text] : sources.flags) {
    auto value = parse_setting(id, text);
    if (!value.ok()) return std::move(value).error().with_context("flag " + flag_name(setting_info(id)));
    settings.put(id, std::move(*value), SettingOrigin::Flag);
  }
  return settings;
}

Expected<void> Settings::set(Setting id, const SettingValue& value) {
  if (locked(id)) {
    const SettingInfo& info = setting_info(id);
    return make_error(ErrorCode::Denied,
                      fmt::format("{} is fixed to {} by {}; take that away to change it", info.name,
                                  format_setting(id, this->value(id)),
                                  origin(id) == SettingOrigin::Flag
                                      ? "the flag " + flag_name(info)
                                      : "the environment variable " + environment_name(info)));
  }
  put(id, value, SettingOrigin::File);
  return {};
}

std::optional<std::string> process_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

}  // namespace neuroshard::config
