// The point at which training goes on after a delta is made, and the number of parts in which the model is
// synchronised (docs/protocol/chain.md); of the network's profile.
#pragma once

#include <algorithm>
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

// The value `sync` of a profile: "plain", "delayed-1", or "fragments=P", as many parts (fragments.h), with
// training that goes on as with "delayed-1".
struct SyncChoice {
  RoundSync each = RoundSync::Plain;
  std::uint32_t fragments = 1;
};
inline constexpr std::uint32_t least_profile_fragments = 2, most_profile_fragments = 16;
inline constexpr std::string_view fragments_word = "fragments=";

// One spelling for each choice, because a network's id follows from it.
inline std::optional<SyncChoice> sync_choice(std::string_view name) {
  if (const auto sync = sync_from_name(name)) return SyncChoice{*sync, 1};
  if (name.substr(0, fragments_word.size()) != fragments_word) return std::nullopt;
  const std::string_view digits = name.substr(fragments_word.size());
  const bool spelt = !digits.empty() && digits.size() <= 2 && digits.front() != '0' &&
                     std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!spelt) return std::nullopt;
  std::uint32_t parts = 0;
  for (const char digit : digits) parts = 10 * parts + static_cast<std::uint32_t>(digit - '0');
  if (parts < least_profile_fragments || parts > most_profile_fragments) return std::nullopt;
  return SyncChoice{RoundSync::Delayed, parts};
}

}  // namespace neuroshard::rounds
