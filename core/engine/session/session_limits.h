// Applies limits to a session while it trains: threads, micro-batch, memory, disk. In effect from the next step.
//
// Threads: the compute thread.
#pragma once

#include <cstdint>
#include <optional>

#include "core/engine/session/session_parts.h"

namespace neuroshard::engine::detail {

class SessionLimits {
 public:
  // `parts` outlives the object and is prepared for training.
  explicit SessionLimits(SessionParts& parts);

  // Threads from the next step on; 0 = from the settings.
  void set_threads(std::uint32_t threads) { threads_wanted_ = threads; }
  // Before a step: applies changed limits. The alert of one that can't be applied has the setting's name.
  void follow(StepReport* report);
  // After a step: requests a smaller micro-batch if the process has become too large.
  void watch(StepReport* report);

 private:
  void follow_threads(StepReport* report);
  void follow_memory(std::uint64_t limit);
  void plan_again();
  void follow_disk(StepReport* report);

  SessionParts& parts_;    // its state has the memory limit and the largest micro-batch in force
  std::uint64_t threads_;  // the settings in force
  std::uint64_t disk_;
  std::uint32_t threads_wanted_ = 0;
  MemoryWatch watch_;
};

}  // namespace neuroshard::engine::detail
