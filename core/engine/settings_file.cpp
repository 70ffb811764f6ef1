// settings.toml: read strictly, written plainly.
#include <fmt/format.h>

#include <algorithm>

// Errors as values instead of exceptions; that variant is not in the packaged library, so it is compiled in
// here.
#undef TOML_HEADER_ONLY
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include "core/engine/settings.h"

namespace neuroshard::engine {
namespace {

Error at_line(const toml::source_region& source, Error error) {
  error.message = fmt::format("line {}: {}", source.begin.line, error.message);
  return error;
}

// A value as the text that parse_setting() reads, so that file, flag and environment accept the same.
Expected<std::string> value_text(const SettingInfo& info, const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return fmt::format("{}", number->get());
  if (const auto* boolean = node.as_boolean()) return std::string(boolean->get() ? "true" : "false");
  return make_error(
      ErrorCode::InvalidArgument,
      fmt::format("{} must be a single value: a number, true or false, or a text in quotes", info.name));
}

}  // namespace

Expected<SettingsFile> parse_settings(ByteSpan toml) {
  if (toml.size() > max_settings_bytes) {
    return make_error(ErrorCode::Exhausted, fmt::format("the settings have {} bytes; at most {} are read",
                                                        toml.size(), max_settings_bytes));
  }
  const toml::parse_result parsed = toml::parse(as_text(toml));
  if (!parsed) {
    return at_line(parsed.error().source(),
                   make_error(ErrorCode::Corrupt,
                              fmt::format("this is not valid TOML: {}", parsed.error().description())));
  }
  SettingsFile file;
  for (const auto& [key, node] : parsed.table()) {
    auto id = find_setting(key.str());
    if (!id.ok()) {
      return at_line(node.source(), make_error(ErrorCode::InvalidArgument, std::move(id).error().message));
    }
    auto text = value_text(setting_info(*id), node);
    if (!text.ok()) return at_line(node.source(), std::move(text).error());
    auto value = parse_setting(*id, *text);
    if (!value.ok()) return at_line(node.source(), std::move(value).error());
    file.emplace_back(*id, std::move(*value));
  }
  std::sort(file.begin(), file.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return file;
}

std::string format_settings(const SettingsFile& file) {
  std::string text =
      "# Settings of this NeuroShard node. neuroshardd writes this file; edit it only while no node runs "
      "here.\n"
      "# \"neuroshardd settings list\" shows every setting with its bounds, default and meaning.\n";
  for (const auto& [id, value] : file) {
    const SettingInfo& info = setting_info(id);
    const std::string formatted = format_setting(id, value);
    const bool plain = info.type == SettingType::Boolean ||
                       (!formatted.empty() && std::all_of(formatted.begin(), formatted.end(),
                                                          [](char c) { return c >= '0' && c <= '9'; }));
    text += plain ? fmt::format("{} = {}\n", info.name, formatted)
                  : fmt::format("{} = \"{}\"\n", info.name, formatted);
  }
  return text;
}

}  // namespace neuroshard::engine
