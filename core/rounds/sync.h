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

// The value `sync` of a profile: "plain", "delayed-1", "fragments=P", so many fragments of the model (fragments.h), or
// "parts=P", so many parts, of which a member holds one. Training goes on as with "delayed-1" in both.
struct SyncChoice {
  RoundSync each = RoundSync::Plain;
  std::uint32_t fragments = 1;
  std::uint32_t parts = 1;
};
inline constexpr std::uint32_t least_profile_fragments = 2, most_profile_fragments = 16;
inline constexpr std::uint32_t least_profile_parts = 2, most_profile_parts = 64;
inline constexpr std::string_view fragments_word = "fragments=", parts_word = "parts=";

// The number after the word: decimal, of one or two digits, without a leading zero, from least to most.
inline std::optional<std::uint32_t> sync_count(std::string_view name, std::string_view word,
                                               std::uint32_t least, std::uint32_t most) {
  if (name.substr(0, word.size()) != word) return std::nullopt;
  const std::string_view digits = name.substr(word.size());
  const bool spelt = !digits.empty() && digits.size() <= 2 && digits.front() != '0' &&
                     std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!spelt) return std::nullopt;
  std::uint32_t count = 0;
  for (const char digit : digits) count = 10 * count + static_cast<std::uint32_t>(digit - '0');
  return count < least || count > most ? std::nullopt : std::optional(count);
}

// One spelling for each choice, because a network's id follows from it.
inline std::optional<SyncChoice> sync_choice(std::string_view name) {
  if (const auto sync = sync_from_name(name)) return SyncChoice{*sync, 1, 1};
  if (const auto count = sync_count(name, fragments_word, least_profile_fragments, most_profile_fragments))
    return SyncChoice{RoundSync::Delayed, *count, 1};
  if (const auto count = sync_count(name, parts_word, least_profile_parts, most_profile_parts))
    return SyncChoice{RoundSync::Delayed, 1, *count};
  return std::nullopt;
}

}  // namespace neuroshard::rounds
