// A JSON file of somebody else as one object, with bounds on its size and nesting. Private to core/export.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/base/bytes.h"
#include "core/base/expected.h"

namespace neuroshard::exporting::detail {

// name: of the file, for messages. Errors: Exhausted (larger than max_bytes), Corrupt (no JSON object, or nested too deep).
Expected<nlohmann::json> parse_json_object(ByteSpan file, std::string_view name, std::uint64_t max_bytes);

}  // namespace neuroshard::exporting::detail
