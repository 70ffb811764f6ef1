// Units of time, short enough for tables of tests. Header only.
#pragma once

#include "core/base/clock.h"

namespace neuroshard::test {

inline constexpr Duration millisecond = std::chrono::milliseconds(1);
inline constexpr Duration second = std::chrono::seconds(1);
inline constexpr Duration minute = std::chrono::minutes(1);
inline constexpr Duration hour = std::chrono::hours(1);

}  // namespace neuroshard::test
