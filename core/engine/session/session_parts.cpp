#include "core/engine/session/session_parts.h"

#include <cstring>

namespace neuroshard::engine::detail {

TrainerState SessionParts::state_to_save() const {
  TrainerState now = state;
  now.micro_batch = loop->micro_batch();
  now.loader_position = loader->position().to_json();
  return now;
}

void SessionParts::tell(const SessionAlert& alert, StepReport* report) {
  services.logger.write({alert.level, alert.category, alert.text});
  history->log(alert.level, alert.category, alert.text);
  if (alert.level >= LogLevel::Warning) report->alerts.push_back(alert);
}

compute::Precision precision_of(const compute::ModuleInfo& info) {
  return std::strcmp(info.precision, "bf16") == 0 ? compute::Precision::Bf16 : compute::Precision::Fp32;
}

compute::StageSpec stage_spec(const SessionParts& parts) {
  compute::StageSpec spec;
  spec.shape = parts.info.shape;
  spec.router = config::router_options(parts.directory.profile().consensus);
  const compute::StageRange& range = parts.info.range;
  spec.first_layer = range.first_layer;
  spec.layer_count = range.layer_count;
  spec.embed = range.embed;
  spec.head = range.head;
  spec.trainable = parts.trains();
  return spec;
}

}  // namespace neuroshard::engine::detail
