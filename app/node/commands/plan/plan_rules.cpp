#include "app/node/commands/plan/plan_rules.h"

namespace neuroshard::app {

plan::GrowthRules plan_rules(const config::ConsensusPart& consensus, const std::string& precision) {
  plan::GrowthRules rules;
  rules.minimum = config::model_shape(consensus);
  rules.grows = consensus.grows != 0;
  rules.heads_per_kv_head = static_cast<std::uint32_t>(consensus.heads_per_kv_head);
  rules.ffn_percent = static_cast<std::uint32_t>(consensus.ffn_percent);
  rules.batch_tokens = consensus.batch_tokens;
  rules.precision = precision == "bf16" ? compute::Precision::Bf16 : compute::Precision::Fp32;
  return rules;
}

double boundary_bytes(const std::string& wire, const compute::ModelShape& shape) {
  if (wire == "int8") return 4.0 + shape.hidden;
  return (wire == "bf16" ? 2.0 : 4.0) * shape.hidden;
}

}  // namespace neuroshard::app
