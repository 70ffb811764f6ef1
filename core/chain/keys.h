// The outbox keys of what a node sends. One per kind and recipient, so that a later item replaces an earlier
// one; those of a height go with it.
#pragma once

#include <cstdint>

namespace neuroshard::chain::outbox_key {

// To all of the committee; or, from `to_one` on, one key per position.
enum class HeightItem : std::uint64_t { Proposal = 0, Prepare = 1, Commit = 2, NewView = 3, Locked = 4 };
inline constexpr std::uint64_t to_one_stride = 8;
inline constexpr std::uint64_t first_of_height = 0x1000;
inline constexpr std::uint64_t last_of_height = 0xFFFFF;
constexpr std::uint64_t of_height(HeightItem item) {
  return first_of_height + static_cast<std::uint64_t>(item);
}
constexpr std::uint64_t of_height(HeightItem item, std::size_t position) {
  return first_of_height + to_one_stride * (position + 1) + static_cast<std::uint64_t>(item);
}

inline constexpr std::uint64_t announcement = 2;
inline constexpr std::uint64_t heartbeat = 3;
inline constexpr std::uint64_t statement = 4;
inline constexpr std::uint64_t genesis = 5;  // and the next three
inline constexpr std::uint64_t succession = 9;
inline constexpr std::uint64_t voucher = 10;
// Evidence and relayed statements: a window that wraps around.
inline constexpr std::uint64_t first_relayed = 0x100;
inline constexpr std::uint64_t relayed_window = 0x100;
// Bundles of what this node passes on: a window that wraps around.
inline constexpr std::uint64_t first_passed_on = 0x200;
inline constexpr std::uint64_t passed_on_window = 0x100;
// Added to the key of an item that goes two ways (relay.h).
inline constexpr std::uint64_t second_path = 0x1'0000'0000;
// The content's own.
inline constexpr std::uint64_t first_of_content = 0x100000;

}  // namespace neuroshard::chain::outbox_key
