// The silent voters that a leader marks dormant in a stall of one height: at first all of them, later one alone,
// another one each time it leads. A Byzantine voter may be heard by some voters only; they refuse each block
// that marks it, but not the one that marks an honest voter that is silent for all (docs/protocol/safety.md).
// Threads: one.
#pragma once

#include <cstdint>
#include <vector>

namespace neuroshard::chain {

class StallMarks {
 public:
  // silent: ascending. The next one alone is the one after the last, however the silent ones change.
  std::vector<std::uint32_t> next(const std::vector<std::uint32_t>& silent);

 private:
  enum class Turn : std::uint8_t { All, FirstAlone, NextAlone };
  Turn turn_ = Turn::All;
  std::uint32_t last_ = 0;  // that was marked alone
};

}  // namespace neuroshard::chain
