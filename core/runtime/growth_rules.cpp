#include "core/runtime/growth_rules.h"

namespace neuroshard::runtime {

plan::GrowthRules growth_rules(const config::ConsensusPart& consensus, compute::Precision precision) {
  plan::GrowthRules rules;
  rules.minimum = config::model_shape(config::at_size(consensus, 0));
  rules.grows = consensus.grows != 0;
  rules.heads_per_kv_head = static_cast<std::uint32_t>(consensus.heads_per_kv_head);
  rules.ffn_percent = static_cast<std::uint32_t>(consensus.ffn_percent);
  rules.batch_tokens = consensus.batch_tokens;
  rules.precision = precision;
  return rules;
}

}  // namespace neuroshard::runtime
