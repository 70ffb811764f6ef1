// settings.toml, and single values as people type them: what is accepted is within bounds and writes itself
// back.
#include "core/base/check.h"
#include "core/config/settings.h"

namespace config = neuroshard::config;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const neuroshard::ByteSpan input{data, size};
  if (const auto file = config::parse_settings(input)) {
    const std::string text = config::format_settings(*file);
    const auto again = config::parse_settings(neuroshard::as_bytes(text));
    NS_CHECK(again.ok());
    NS_CHECK(*again == *file);
    config::Settings::Sources sources;
    sources.file = &*file;
    NS_CHECK(config::Settings::resolve(sources).ok());
  }
  if (size <= 64) {
    for (const config::SettingInfo& info : config::settings_table()) {
      const auto value = config::parse_setting(info.id, neuroshard::as_text(input));
      if (!value || !config::is_number(info.type)) continue;
      NS_CHECK(value->number >= info.least && value->number <= info.most);
    }
  }
  return 0;
}
