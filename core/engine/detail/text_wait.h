// The wait of a training whose text can't be fetched now, for example without a network, or is still being
// fetched: the training stays, and the node tries again by itself.
//
// Threads: the core executor.
#pragma once

#include <memory>

#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/engine/detail/engine_context.h"
#include "core/engine/detail/training_progress.h"

namespace neuroshard::engine::detail {

class TextWait {
 public:
  // Both outlive it.
  TextWait(const EngineContext& context, TrainingProgress& progress);

  // Shows the error, and lets the scheduler choose a job after some time; longer after each call. Busy: the text
  // is still being fetched, which is no error, and the node looks soon.
  void begin(const Error& error);
  // Names the wait as the activity, without publishing it.
  void show();
  // The text is there, or nobody waits for it any more.
  void end();
  // The training has no step of its own text before this is over.
  bool runs() const { return timer_ != nullptr; }

 private:
  // Raises the alert. The time until the next try.
  Duration tell(const Error& error);

  const EngineContext& context_;
  TrainingProgress& progress_;
  std::unique_ptr<TimerHandle> timer_;
  bool waits_ = false;  // the text is not there
  Duration length_{};   // of the last wait after an error; 0 = there was none
};

}  // namespace neuroshard::engine::detail
