// The demands of a voter on a proposed block, beside those that hold always (apply_block, arithmetic). Omissions,
// silence and the time on a clock are known to some voters only; they must not hold up a height for ever
// (docs/protocol/chain.md).
#pragma once

#include <cstdint>

namespace neuroshard::chain {

enum class Demand : std::uint8_t {
  Everything = 0,  // views 0 to 2: no omission, no needlessly carried row, and those of Presence
  Presence = 1,    // view 3 on: no silent mark for a voter heard, a time at most a minute ahead
  Nothing = 2,     // a quorum has prepared it: no other block of this height may be possible any more
};
inline constexpr std::uint32_t first_lenient_view = 3;

}  // namespace neuroshard::chain
