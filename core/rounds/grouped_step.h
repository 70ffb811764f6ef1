// The two combinations of a round of two levels: a sub-group's contributions to its aggregate, as bytes, and
// the certified aggregates to the anchor. Pure functions of what the certificate names, the same bits
// everywhere.
#pragma once

#include <cstdint>
#include <vector>

#include "core/rounds/grouped_body.h"
#include "core/rounds/step.h"

namespace neuroshard::rounds {

// An aggregate travels as canonical int8, whatever the contributions' codec is: it is dense, and sent once.
inline constexpr outer::CodecOptions aggregate_codec{outer::Codec::Int8, 64};

struct GroupAggregate {
  Payload payload;
  Hash256 hash{};                       // SHA-256 of it
  std::vector<net::NodeId> unreadable;  // payloads that don't decode
};
// values: of a delta.  Errors: those of outer::aggregate; Denied: nothing counts.
Expected<GroupAggregate> make_group_aggregate(const OuterRules& rules, std::uint64_t values,
                                              const std::vector<StepInput>& inputs,
                                              std::uint64_t most_tokens);

// The rule over `groups` aggregates: of two the mean, of three and four the clipped trimmed mean with one cut
// off at each end, from five on what the same number of contributions takes. A rule that was set stays.
outer::AggregationOptions top_rule(const outer::AggregationOptions& rule, std::size_t groups);

struct GroupInput {
  std::uint16_t group = 0;
  std::uint64_t tokens = 0;
  std::size_t contributors = 0;
  Payload aggregate;
};
// identity: of the round that is made. The outer learning rate goes by the contributors of all sub-groups.
// StepResult::report counts sub-groups. Denied: an aggregate does not decode.
Expected<StepResult> make_top_step(const OuterRules& rules, const outer::AnchorIdentity& identity,
                                   const OuterState& before, const std::vector<GroupInput>& inputs,
                                   std::uint64_t most_tokens);

}  // namespace neuroshard::rounds
