// The decisions of an aggregation before it reads any value: limits, and the rule for so many contributions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/outer/aggregate.h"

namespace neuroshard::outer::detail {

// The rule that runs for n contributions.
struct Plan {
  RuleChoice choice;
  std::size_t f = 0;
  std::size_t trimmed = 0;
  bool has_most_norm = false;  // longer deltas are clipped to AggregationOptions::most_norm

  bool needs_distances() const {
    return choice.nearest_neighbour_mixing || choice.rule == Rule::Krum || choice.rule == Rule::MultiKrum ||
           choice.rule == Rule::GeometricMedian || choice.rule == Rule::CenteredClipping;
  }
  bool by_coordinate() const {
    return (choice.rule == Rule::TrimmedMean && trimmed > 0) || choice.rule == Rule::CoordinateMedian;
  }
};

// InvalidArgument or Unsupported: no aggregation has these options, or as many contributions or values.
Expected<void> check_aggregation(const AggregationOptions& options, std::size_t contributions,
                                 std::uint64_t most_tokens, std::uint64_t values);

// Of n contributions; refused: those that were thrown out already.  InvalidArgument: no rule does for them.
Expected<Plan> plan_for(const AggregationOptions& options, std::size_t n, std::size_t refused);

}  // namespace neuroshard::outer::detail
