// When to look for releases: at most once a day, at moments that say nothing about when somebody uses the
// computer. Pure functions of time and chance.
#pragma once

#include <functional>
#include <optional>

#include "core/base/clock.h"

namespace neuroshard::release {

inline constexpr std::chrono::hours shortest_pause{24};  // between two looks
inline constexpr std::chrono::hours longest_delay{12};   // added by chance
inline constexpr std::chrono::minutes start_spread{
    15};  // a look that is late waits up to this after the start

// Uniform in [0, bound).
using Chance = std::function<std::uint64_t(std::uint64_t bound)>;
Chance system_chance();

// When the owner switches looking on: at once, unless the last look is less than a day ago.
WallTime first_look(std::optional<WallTime> last, WallTime now);
// After a look at `now`.
WallTime next_look(WallTime now, const Chance& chance);
// At a start of the program, with the moment that an earlier run chose. A moment that is past, or too far away
// because the clock was wrong, is chosen anew.
WallTime look_after_start(std::optional<WallTime> chosen, WallTime now, const Chance& chance);

}  // namespace neuroshard::release
