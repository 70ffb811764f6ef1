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

outer::AnchorIdentity anchor_identity(const Hash256& network, const OuterRules& rules, const RoundSlot& slot,
                                      std::uint64_t round) {
  return {network, rules.architecture_version, slot_number(slot), round, rules.tokenizer};
}

Hash256 hash_of(const outer::AnchorIdentity& identity, const OuterState& state) {
  return outer::anchor_hash(identity, {state.weights, state.momentum, state.bias});
}

std::vector<outer::EncodedContribution> encoded(const std::vector<StepInput>& inputs) {
  std::vector<outer::EncodedContribution> contributions;
  for (const StepInput& input : inputs) contributions.push_back({input.id, input.tokens, *input.payload});
  return contributions;
}

std::vector<net::NodeId> unreadable(const outer::AggregateReport& report) {
  std::vector<net::NodeId> ids;
  for (const outer::Judged& judged : report.judged)
    if (judged.refusal == outer::Refusal::Unreadable) ids.push_back(judged.id);
  return ids;
}

Expected<StepResult> make_step(const OuterRules& rules, const outer::AnchorIdentity& identity,
                               const OuterState& before, const std::vector<StepInput>& inputs,
                               std::uint64_t most_tokens, const RowDraw& draw) {
  const std::size_t P = before.weights.size();
  StepResult result;
  auto after = std::make_shared<OuterState>(before);
  if (!inputs.empty()) {
    std::vector<float> aggregate(P);
    NS_ASSIGN_OR_RETURN(result.report, aggregate_row(rules, draw, inputs, most_tokens, aggregate));
    result.unreadable = unreadable(result.report);
    if (result.report.counted > 0) {
      const outer::OuterOptimizer optimizer{outer_learning_rate(rules, result.report.counted), rules.mu};
      NS_RETURN_IF_ERROR(outer::outer_step(optimizer, aggregate, after->momentum, after->weights));
    }
  }
  result.leaves = outer::anchor_leaves(identity, {after->weights, after->momentum, after->bias});
  result.hash = crypto::merkle_root(result.leaves);
  result.state = std::move(after);
  return result;
}

}  // namespace neuroshard::rounds
