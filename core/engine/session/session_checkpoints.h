// Saves a session: after a step by policy, after a synchronisation of the rounds, on demand, and at its end.
// It writes the history before each checkpoint, so that a run that continues from it has no gap.
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

  // After a step: starts a save if one is due, and reports the saves completed since the last step.
  void after_step(StepReport* report);
  // The rounds have just synchronised the model.
  void after_sync();
  // Saves now; returns when the checkpoint is on the disk.
  Expected<std::string> save();
  // Saves if the state has changed, and waits for the writer.
  Expected<void> finish();

 private:
  SessionParts& parts_;
  bool started_after_sync_ = false;  // since the last report
  double sync_stall_seconds_ = 0;    // since the last report
};

}  // namespace neuroshard::engine::detail
