#include "core/engine/session/session_checkpoints.h"

#include <fmt/format.h>

#include <utility>

namespace neuroshard::engine::detail {

void SessionCheckpoints::after_step(StepReport* report) {
  TrainingCheckpoints& checkpoints = *parts_.checkpoints;
  report->checkpoint_started = std::exchange(started_after_sync_, false);
  report->seconds.checkpoint_stall += std::exchange(sync_stall_seconds_, 0);
  if (checkpoints.due(parts_.state)) {
    const MonotonicTime begin = parts_.services.clock.monotonic_now();
    // Not while another save is being written: a later step requests the save again.
    if (!checkpoints.in_flight()) parts_.history->flush();
    if (checkpoints.save(parts_.state_to_save())) report->checkpoint_started = true;
    report->seconds.checkpoint_stall += to_seconds(parts_.services.clock.monotonic_now() - begin);
  }
  TrainingCheckpoints::News news = checkpoints.collect();
  report->checkpoint_saved = std::move(news.saved);
  for (const SessionAlert& alert : news.alerts) parts_.tell(alert, report);
}

void SessionCheckpoints::after_sync() {
  if (!parts_.checkpoints->due_after_sync(parts_.state)) return;
  const MonotonicTime begin = parts_.services.clock.monotonic_now();
  parts_.history->flush();
  started_after_sync_ = parts_.checkpoints->save(parts_.state_to_save());
  sync_stall_seconds_ += to_seconds(parts_.services.clock.monotonic_now() - begin);
}

Expected<std::string> SessionCheckpoints::save() {
  parts_.history->flush();
  return parts_.checkpoints->save_now(parts_.state_to_save());
}

Expected<void> SessionCheckpoints::finish() {
  parts_.history->flush();
  if (parts_.checkpoints->up_to_date(parts_.state.step)) return {};
  NS_ASSIGN_OR_RETURN(const std::string name, parts_.checkpoints->save_now(parts_.state_to_save()));
  parts_.history->log(LogLevel::Info, "checkpoint", fmt::format("Saved {} at the end of the run.", name));
  return {};
}

}  // namespace neuroshard::engine::detail
