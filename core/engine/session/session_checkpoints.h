// When a session saves: after a step by policy, after a synchronisation of the rounds, on demand, and at its
// end. The history is written before each checkpoint, so that a run that continues from it finds no gap.
//
// Threads: the compute thread.
#pragma once

#include <string>

#include "core/engine/session/session_parts.h"

namespace neuroshard::engine::detail {

class SessionCheckpoints {
 public:
  // `parts` outlives the object and is prepared for training.
  explicit SessionCheckpoints(SessionParts& parts) : parts_(parts) {}

  // After a step: starts a save if one is due, and reports what the writer has done since the last step.
  void after_step(StepReport* report);
  // The rounds have just synchronised the model.
  void after_sync();
  // Saves now; on the disk when it returns.
  Expected<std::string> save();
  // Saves if there is anything new, and waits for the writer.
  Expected<void> finish();

 private:
  SessionParts& parts_;
  bool started_after_sync_ = false;  // since the last report
  double sync_stall_seconds_ = 0;    // since the last report
};

}  // namespace neuroshard::engine::detail
