// Shares in whole percent, for a person.
#pragma once

#include <algorithm>
#include <cmath>

namespace neuroshard {

// Rounded down, and 100 only where it is all.
inline int whole_percent(double share) {
  constexpr double tolerance = 1e-9;  // 29 of 100 are 29 %, although their product is below
  return share >= 1 ? 100 : std::min(99, static_cast<int>(std::floor(100 * share + tolerance)));
}

}  // namespace neuroshard
