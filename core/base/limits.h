// Bounds that several folders share. A bound that one folder owns stands in that folder, with its reason.
#pragma once

#include <cstdint>

namespace neuroshard::limits {

// A JSON document that we parse whole (manifest, tokenizer, profile): larger ones are refused before parsing.
inline constexpr std::uint64_t max_json_bytes = 256u << 20;
// Nesting of such a document.
inline constexpr std::uint32_t max_json_depth = 64;

}  // namespace neuroshard::limits
