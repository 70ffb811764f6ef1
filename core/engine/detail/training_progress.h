// The training's progress in the snapshot and the events: the activity, the steps, their losses.
//
// Threads: the core executor; the function of reporter() is for the compute thread.
#pragma once

#include <functional>
#include <string>

#include "core/engine/detail/engine_context.h"
#include "core/engine/detail/snapshot_publisher.h"
#include "core/engine/training_session.h"

namespace neuroshard::engine::detail {

class TrainingProgress {
 public:
  explicit TrainingProgress(const EngineContext& context);

  // For PrepareOptions::on_progress: shows a part of the reports, at most ten a second.
  std::function<void(const PrepareProgress&)> reporter();
  // Writes a step into the draft and publishes it.
  void record(const StepReport& report);
  void announce(const StepReport& report);
  // A new training begins without the alerts that the steps of another one raised.
  void clear_alerts();
  // The rounds have nothing to train at the moment: the activity names the reason.
  void show_rest();
  // An activity without a known share; empty = none. Does not publish it.
  void set_activity(std::string activity);

 private:
  void show(const PrepareProgress& progress);

  const EngineContext& context_;
  node::Snapshot& draft_;
};

}  // namespace neuroshard::engine::detail
