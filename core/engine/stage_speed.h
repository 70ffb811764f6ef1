// How fast a stage trains while it computes: the median over its last steps, so that a step beside another program or across a
// suspension doesn't count.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>

#include "core/base/clock.h"

namespace neuroshard::engine {

class StageSpeed {
 public:
  static constexpr std::size_t most_steps = 31, least_steps = 5;

  // Of one step: tokens that passed the stage forward and back, and how long it computed for them.
  void add(std::uint64_t tokens, Duration computed);
  // The stage is another one.
  void clear();
  // Tokens a second of computing. Nothing: too few steps yet.
  std::optional<double> tokens_per_second() const;

 private:
  mutable std::mutex mutex_;
  std::deque<double> last_;
};

}  // namespace neuroshard::engine
