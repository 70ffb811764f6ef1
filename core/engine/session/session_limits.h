// The limits of a session while it trains: threads, micro-batch and memory. They hold from the next step on.
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

  // Threads from the next step on; 0 = as the settings say.
  void set_threads(std::uint32_t threads) { threads_wanted_ = threads; }
  // Before a step: takes over what has changed.
  void follow(StepReport* report);
  // After a step: asks for a smaller micro-batch where the process has become too large.
  void watch(StepReport* report);

 private:
  void follow_threads(StepReport* report);
  void follow_memory();

  SessionParts& parts_;
  std::uint64_t memory_;  // the settings in force
  std::uint64_t threads_;
  std::uint32_t threads_wanted_ = 0;
  MemoryWatch watch_;
};

}  // namespace neuroshard::engine::detail
