#include "core/rounds/grouped_step.h"

#include "core/crypto/hash.h"

namespace neuroshard::rounds {

Expected<GroupAggregate> make_group_aggregate(const OuterRules& rules, std::uint64_t values,
                                              const std::vector<StepInput>& inputs,
                                              std::uint64_t most_tokens) {
  GroupAggregate result;
  std::vector<float> aggregate(values);
  NS_ASSIGN_OR_RETURN(
      const outer::AggregateReport report,
      outer::aggregate_encoded(rules.aggregation, rules.codec, encoded(inputs), most_tokens, aggregate));
  result.unreadable = unreadable(report);
  if (!result.unreadable.empty()) return result;
  if (report.counted == 0)
    return make_error(ErrorCode::Denied, "none of the sub-group's contributions can be used");
  NS_ASSIGN_OR_RETURN(Bytes payload, outer::encode(aggregate_codec, aggregate));
  result.hash = crypto::sha256(payload);
  result.payload = std::make_shared<const Bytes>(std::move(payload));
  return result;
}

outer::AggregationOptions top_rule(const outer::AggregationOptions& rule, std::size_t groups) {
  outer::AggregationOptions top = rule;
  top.f.reset();
  if (rule.choice || groups >= 5) return top;
  if (groups <= 2) {
    top.choice = outer::RuleChoice{outer::Rule::WeightedMean, false, false};
  } else {
    top.choice = outer::RuleChoice{outer::Rule::TrimmedMean, true, false};
    top.f = 1;
  }
  return top;
}

Expected<StepResult> make_top_step(const OuterRules& rules, const outer::AnchorIdentity& identity,
                                   const OuterState& before, const std::vector<GroupInput>& inputs,
                                   std::uint64_t most_tokens) {
  OuterRules top = rules;
  top.codec = aggregate_codec;
  top.aggregation = top_rule(rules.aggregation, inputs.size());
  std::size_t contributors = 0;
  std::vector<StepInput> rows;
  for (const GroupInput& input : inputs) {
    contributors += input.contributors;
    net::NodeId id{};  // rows are ordered by it
    id[0] = static_cast<std::uint8_t>(input.group >> 8);
    id[1] = static_cast<std::uint8_t>(input.group);
    rows.push_back({id, input.tokens, input.aggregate});
  }
  top.lr = outer_learning_rate(rules, contributors);
  NS_ASSIGN_OR_RETURN(StepResult result,
                      make_step(top, identity, before, rows, most_tokens * max_group_members));
  if (!result.unreadable.empty())
    return make_error(ErrorCode::Denied, "a sub-group's aggregate can't be decoded");
  return result;
}

}  // namespace neuroshard::rounds
