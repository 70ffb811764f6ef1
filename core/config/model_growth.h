// A size that the model of a network may grow to, as its profile fixes it (docs/protocol/networks.md#sizes).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/expected.h"

namespace neuroshard::config {

// Memory counts in whole 500 MB (plan::memory_tier_bytes), as members offer it.
struct ModelGrowth {
  std::uint64_t layers = 0, hidden = 0;
  std::uint64_t member_tiers = 0;   // that a member needs to offer
  std::uint64_t network_tiers = 0;  // that all members together need to offer
  friend bool operator==(const ModelGrowth&, const ModelGrowth&) = default;
};

// "6x192@4/12": layers, width, and the memory of a member and of all.
std::string to_text(const ModelGrowth& size);
// Exactly what to_text() writes; its values may be out of range. InvalidArgument says how it is written.
Expected<ModelGrowth> parse_model_growth(std::string_view text);

}  // namespace neuroshard::config
