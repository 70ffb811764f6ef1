#include "core/export/detail/json_object.h"

#include <fmt/format.h>

namespace neuroshard::exporting::detail {

using nlohmann::json;

Expected<json> parse_json_object(ByteSpan file, std::string_view name, std::uint64_t max_bytes) {
  constexpr int max_nesting = 16;
  if (file.size() > max_bytes) return make_error(ErrorCode::Exhausted, fmt::format("{} is too large", name));
  // Deep nesting is refused while parsing, before it costs memory.
  bool deep = false;
  json value = json::parse(
      file.begin(), file.end(),
      [&deep](int depth, json::parse_event_t, json&) {
        deep = deep || depth > max_nesting;
        return !deep;
      },
      false);
  if (deep || value.is_discarded() || !value.is_object())
    return make_error(ErrorCode::Corrupt, fmt::format("{} is not a JSON object", name));
  return value;
}

}  // namespace neuroshard::exporting::detail
