// The demands of a voter on a proposed block, beside those that hold always (apply_block, arithmetic, a time
// at most a minute ahead of its own clock). Omissions and silence are known to some voters only; they must not
// hold up a height for ever (docs/protocol/chain.md).
#pragma once

#include <cstdint>

namespace neuroshard::chain {

enum class Demand : std::uint8_t {
  Everything = 0,  // views 0 to 2: no omission, no needlessly carried row, no silent mark for a voter heard
  Presence = 1,    // view 3 on: no silent mark for a voter heard
  Nothing = 2,     // a quorum has prepared it: no other block of this height may be possible any more
};
inline constexpr std::uint32_t first_lenient_view = 3;

}  // namespace neuroshard::chain
