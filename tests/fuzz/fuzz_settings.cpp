// settings.toml, and single values as people type them: what is accepted is within bounds and writes itself
// back.
#include "core/base/check.h"
#include "core/engine/settings.h"

namespace engine = neuroshard::engine;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const neuroshard::ByteSpan input{data, size};
  if (const auto file = engine::parse_settings(input)) {
    const std::string text = engine::format_settings(*file);
    const auto again = engine::parse_settings(neuroshard::as_bytes(text));
    NS_CHECK(again.ok());
    NS_CHECK(*again == *file);
    engine::Settings::Sources sources;
    sources.file = &*file;
    NS_CHECK(engine::Settings::resolve(sources).ok());
  }
  if (size <= 64) {
    for (const engine::SettingInfo& info : engine::settings_table()) {
      const auto value = engine::parse_setting(info.id, neuroshard::as_text(input));
      if (!value || !engine::is_number(info.type)) continue;
      NS_CHECK(value->number >= info.least && value->number <= info.most);
    }
  }
  return 0;
}
