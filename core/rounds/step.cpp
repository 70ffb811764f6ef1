#include "core/rounds/step.h"

#include "core/crypto/merkle.h"
#include "core/rounds/aggregation_tree.h"

namespace neuroshard::rounds {

float outer_learning_rate(const OuterRules& rules, std::size_t contributors) {
  if (rules.lr) return *rules.lr;
  switch (contributors) {
    case 1: return 0.4f;
    case 2:
    case 3:
    case 4: return 0.6f;
    case 8: return 0.8f;
    default: return 0.7f;
  }
}

// The anchor hash has a number for each slot of the model, with the kind in its highest bits. A row of the whole
// model has kind 0 and stands in bits 16 to 28.
outer::AnchorIdentity anchor_identity(const Hash256& network, const OuterRules& rules, std::uint32_t row,
                                      std::uint64_t round) {
  return {network, rules.architecture_version, (row & 0x1fff) << 16, round, rules.tokenizer};
}

Hash256 hash_of(const outer::AnchorIdentity& identity, const OuterState& state) {
  return outer::anchor_hash(identity, {state.weights, state.momentum, state.bias});
}

Expected<StepPtr> make_step(const OuterRules& rules, const outer::AnchorIdentity& identity,
                            const OuterState& before, const std::vector<StepInput>& inputs,
                            std::uint64_t most_tokens, const RowDraw& draw) {
  const std::size_t P = before.weights.size();
  auto result = std::make_shared<StepResult>();
  outer::AggregateReport& report = result->report.emplace();
  auto after = std::make_shared<OuterState>(before);
  if (!inputs.empty()) {
    std::vector<float> aggregate(P);
    NS_ASSIGN_OR_RETURN(report, aggregate_row(rules, draw, inputs, most_tokens, aggregate));
    if (report.counted > 0) {
      const outer::OuterOptimizer optimizer{outer_learning_rate(rules, report.counted), rules.mu};
      NS_RETURN_IF_ERROR(outer::outer_step(optimizer, aggregate, after->momentum, after->weights));
    }
  }
  result->leaves = outer::anchor_leaves(identity, {after->weights, after->momentum, after->bias});
  result->hash = crypto::merkle_root(result->leaves);
  result->state = std::move(after);
  return StepPtr(std::move(result));
}

}  // namespace neuroshard::rounds
