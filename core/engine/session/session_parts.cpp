#include "core/engine/session/session_parts.h"

namespace neuroshard::engine::detail {

TrainerState SessionParts::state_to_save() const {
  TrainerState now = state;
  now.micro_batch = loop->micro_batch();
  now.memory_limit = directory.settings().number(config::Setting::MemoryLimit);
  now.max_micro_batch = directory.settings().number(config::Setting::MaxMicroBatch);
  now.loader_position = loader->position().to_json();
  return now;
}

void SessionParts::tell(const SessionAlert& alert, StepReport* report) {
  services.logger.write({alert.level, alert.category, alert.text});
  history->log(alert.level, alert.category, alert.text);
  if (alert.level >= LogLevel::Warning) report->alerts.push_back(alert);
}

}  // namespace neuroshard::engine::detail
