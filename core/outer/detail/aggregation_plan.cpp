#include "core/outer/detail/aggregation_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace neuroshard::outer::detail {
namespace {

// With fewer contributions, one Byzantine contributor can move the median of their norms.
constexpr std::size_t enough_for_median = 5;

Error refuse(std::string message) {
  return make_error(ErrorCode::InvalidArgument, std::move(message));
}

RuleChoice choice_for(const AggregationOptions& options, std::size_t n) {
  if (options.choice) return *options.choice;
  if (n < enough_for_median) return {Rule::WeightedMean, false, false};
  if (n <= 7) return {Rule::CenteredClipping, true, false};
  if (options.sparse) return {Rule::CenteredClipping, true, true};
  return {Rule::TrimmedMean, true, true};
}

}  // namespace

Expected<void> check_aggregation(const AggregationOptions& options, std::size_t contributions,
                                 std::uint64_t most_tokens, std::uint64_t values) {
  if (values == 0) return refuse("an aggregation needs at least one value");
  if (most_tokens == 0) return refuse("the most tokens that a round allows must be at least 1");
  if (contributions > max_contributions)
    return refuse(
        fmt::format("{} contributions are more than the {} that one aggregation takes; form sub-groups",
                    contributions, max_contributions));
  if (options.trim_fraction && !(*options.trim_fraction >= 0 && *options.trim_fraction < 0.5))
    return refuse(fmt::format("a trimmed mean cuts off a share from 0 to below 0.5 at each end, not {}",
                              *options.trim_fraction));
  if (options.centered_clipping_iterations == 0 || options.geometric_median_iterations == 0 ||
      options.centered_clipping_iterations > 1000 || options.geometric_median_iterations > 1000)
    return refuse("iterations of an aggregation rule go from 1 to 1000");
  if (options.most_norm && !(*options.most_norm > 0 && std::isfinite(*options.most_norm)))
    return refuse(
        fmt::format("the largest norm of a delta must be a positive number, not {}", *options.most_norm));
  if (options.instruction_set && !is_supported(*options.instruction_set))
    return make_error(ErrorCode::Unsupported,
                      fmt::format("this processor has no {}", to_string(*options.instruction_set)));
  return {};
}

Expected<Plan> plan_for(const AggregationOptions& options, std::size_t n, std::size_t refused) {
  Plan plan{choice_for(options, n), default_byzantine(n)};
  if (options.f) {
    // Each refused contribution is one Byzantine peer less among the rest; else four senders of NaN could
    // stop a round of ten that is set to withstand four.
    const std::size_t left = *options.f > refused ? *options.f - refused : 0;
    plan.f = std::min(*options.f, std::max(left, default_byzantine(n)));
    if (plan.f > 0 && 2 * plan.f >= n)
      return refuse(fmt::format(
          "no rule withstands {} Byzantine peers among {} contributions; it requires more than {}", plan.f, n,
          2 * plan.f));
  }
  const bool none_byzantine = options.f && *options.f == 0;
  if (n == 1 || none_byzantine) return Plan{{Rule::WeightedMean, false, false}};
  plan.has_most_norm = !options.choice && options.most_norm && n < enough_for_median;
  RuleChoice& choice = plan.choice;
  if (choice.rule == Rule::Krum && !options.f) plan.f = 1;
  if ((choice.rule == Rule::Krum || choice.rule == Rule::MultiKrum) && n < 2 * plan.f + 3)
    return refuse(fmt::format("{} against {} Byzantine peers needs at least {} contributions, not {}",
                              to_string(choice.rule), plan.f, 2 * plan.f + 3, n));
  if (choice.rule == Rule::TrimmedMean)
    plan.trimmed = options.trim_fraction
                       ? static_cast<std::size_t>(*options.trim_fraction * static_cast<double>(n))
                       : plan.f;
  if (choice.nearest_neighbour_mixing && plan.f == 0) {
    // Each row would become the mean of all.
    choice = {Rule::TrimmedMean, choice.clip_to_median_norm, false};
    plan.trimmed = 0;
  }
  return plan;
}

}  // namespace neuroshard::outer::detail
