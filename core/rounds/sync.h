// When a node's training goes on after its delta is made (SPEC §7); of the network's profile.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace neuroshard::rounds {

enum class RoundSync : std::uint8_t {
  Plain,    // from the round's certified anchor: until that is here, training rests
  Delayed,  // at once: what is trained until the anchor is here goes along onto it, and into the next delta
};

inline std::string_view to_string(RoundSync sync) {
  return sync == RoundSync::Plain ? "plain" : "delayed-1";
}
inline std::optional<RoundSync> sync_from_name(std::string_view name) {
  for (const RoundSync sync : {RoundSync::Plain, RoundSync::Delayed})
    if (name == to_string(sync)) return sync;
  return std::nullopt;
}

}  // namespace neuroshard::rounds
