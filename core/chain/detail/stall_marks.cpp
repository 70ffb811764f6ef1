#include "core/chain/detail/stall_marks.h"

#include <algorithm>

namespace neuroshard::chain {

std::vector<std::uint32_t> StallMarks::next(const std::vector<std::uint32_t>& silent) {
  if (silent.empty()) return {};
  if (turn_ == Turn::All) {
    turn_ = Turn::FirstAlone;
    return silent;
  }
  auto one = silent.begin();
  if (turn_ == Turn::NextAlone) one = std::upper_bound(silent.begin(), silent.end(), last_);
  if (one == silent.end()) one = silent.begin();
  turn_ = Turn::NextAlone;
  last_ = *one;
  return {*one};
}

}  // namespace neuroshard::chain
