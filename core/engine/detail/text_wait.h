// The wait of a training whose text can't be fetched now, for example without a network: the training stays,
// and the node tries again by itself.
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

  // Shows the error, and lets the scheduler choose a job after some time; longer after each call.
  void begin(const Error& error);
  // Names the wait as the activity, without publishing it.
  void show();
  // The text is there, or nobody waits for it any more.
  void end();
  // The training has no step of its own text before this is over.
  bool runs() const { return timer_ != nullptr; }

 private:
  const EngineContext& context_;
  TrainingProgress& progress_;
  std::unique_ptr<TimerHandle> timer_;
  Duration length_{};  // of the last wait; 0 = the text is there
};

}  // namespace neuroshard::engine::detail
