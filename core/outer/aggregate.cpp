#include "core/outer/aggregate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "core/outer/detail/aggregation_passes.h"

namespace neuroshard::outer {
namespace {

using detail::AggregationPasses;
using detail::Gram;
using detail::Kept;

// Round to nearest, no flushing of subnormals, whatever a library left in this thread.
class DefaultArithmetic {
 public:
  DefaultArithmetic() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultArithmetic() { std::fesetenv(&before_); }
  DefaultArithmetic(const DefaultArithmetic&) = delete;
  DefaultArithmetic& operator=(const DefaultArithmetic&) = delete;

 private:
  std::fenv_t before_;
};

// The rule that runs for n contributions.
struct Plan {
  RuleChoice choice;
  std::size_t f = 0;
  std::size_t trimmed = 0;

  bool needs_distances() const {
    return choice.nearest_neighbour_mixing || choice.rule == Rule::Krum || choice.rule == Rule::MultiKrum ||
           choice.rule == Rule::GeometricMedian || choice.rule == Rule::CenteredClipping;
  }
  bool by_coordinate() const {
    return (choice.rule == Rule::TrimmedMean && trimmed > 0) || choice.rule == Rule::CoordinateMedian;
  }
};

Error refuse(std::string message) {
  return make_error(ErrorCode::InvalidArgument, std::move(message));
}

Expected<void> check(const AggregationOptions& options, std::size_t contributions, std::uint64_t most_tokens,
                     std::size_t values) {
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
  if (options.instruction_set && !is_supported(*options.instruction_set))
    return make_error(ErrorCode::Unsupported,
                      fmt::format("this processor has no {}", to_string(*options.instruction_set)));
  return {};
}

RuleChoice choice_for(const AggregationOptions& options, std::size_t n) {
  if (options.choice) return *options.choice;
  if (n <= 4) return {Rule::WeightedMean, false, false};
  if (n <= 7) return {Rule::CenteredClipping, true, false};
  if (options.sparse) return {Rule::CenteredClipping, true, true};
  return {Rule::TrimmedMean, true, true};
}

// refused: contributions that were thrown out already.
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

// Facts about a contribution beside its values.
struct Claim {
  Hash256 id{};
  std::uint64_t tokens = 0;
  bool right_size = true;
};

// One aggregation under way: who counts, and the report that grows.
class Aggregation {
 public:
  // claims: of the rows, in their order.
  Aggregation(const AggregationOptions& options, const std::vector<Claim>& claims, detail::DeltaRows& rows,
              std::uint64_t most_tokens, Span<float> out)
      : options_(options),
        claims_(claims),
        rows_(rows),
        most_tokens_(most_tokens),
        out_(out),
        kernels_(detail::kernels_of(options.instruction_set.value_or(detail::best_instruction_set()))) {}

  Expected<AggregateReport> run() {
    judge();
    while (!counted_.empty()) {
      NS_ASSIGN_OR_RETURN(plan_, plan_for(options_, counted_.size(), refused()));
      if (step()) break;
    }
    finish_report();
    return std::move(report_);
  }

 private:
  // Contributions by id, and those refused that can be told without their values.
  void judge() {
    order_.resize(claims_.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::sort(order_.begin(), order_.end(),
              [&](std::size_t a, std::size_t b) { return claims_[a].id < claims_[b].id; });
    for (std::size_t k = 0; k < order_.size(); ++k) {
      const Claim& c = claims_[order_[k]];
      const auto same = [&](std::size_t other) { return claims_[order_[other]].id == c.id; };
      Judged judged;
      judged.id = c.id;
      judged.tokens = c.tokens;
      if ((k > 0 && same(k - 1)) || (k + 1 < order_.size() && same(k + 1)))
        judged.refusal = Refusal::DuplicateId;
      else if (!c.right_size)
        judged.refusal = Refusal::WrongSize;
      else if (c.tokens == 0)
        judged.refusal = Refusal::NoTokens;
      else
        counted_.push_back(k);
      report_.judged.push_back(judged);
    }
  }

  Judged& judged(std::size_t row) { return report_.judged[counted_[row]]; }

  // The proven Byzantine peers. An undecodable payload is no evidence against its sender: it counts as
  // absent.
  std::size_t refused() const {
    return static_cast<std::size_t>(
        std::count_if(report_.judged.begin(), report_.judged.end(), [](const Judged& one) {
          return one.refusal != Refusal::None && one.refusal != Refusal::Unreadable;
        }));
  }

  // True: done. False: some are refused now, and a plan for the rest is needed.
  bool step() {
    std::vector<std::size_t> rows;
    for (const std::size_t k : counted_) rows.push_back(order_[k]);
    const AggregationPasses passes(kernels_, rows_, std::move(rows));

    Gram gram;
    scales_.assign(passes.rows(), 1.0f);
    report_.median_norm = 0;
    if (plan_.needs_distances() || plan_.choice.clip_to_median_norm) {
      std::vector<double> squares(passes.rows());
      if (plan_.needs_distances()) {
        gram = passes.gram();
        for (std::size_t i = 0; i < squares.size(); ++i) squares[i] = gram(i, i);
      } else {
        squares = passes.squares();
      }
      if (refuse_unreadable() || refuse_unless_finite(squares)) return false;
      measure(squares);
    }
    if (plan_.choice.clip_to_median_norm) clip();
    const bool finite = run_rule(passes, gram);
    if (refuse_unreadable()) return false;
    if (finite) return true;
    const bool refused = refuse_unless_finite(passes.squares());
    NS_CHECK(refused);
    return false;
  }

  bool refuse_unless_finite(const std::vector<double>& squares) {
    return refuse_unless([&](std::size_t i) { return std::isfinite(squares[i]); }, Refusal::NotFinite);
  }
  bool refuse_unreadable() {
    return refuse_unless([&](std::size_t i) { return rows_.readable(order_[counted_[i]]); },
                         Refusal::Unreadable);
  }

  // True: somebody was refused.
  template <class Good>
  bool refuse_unless(Good good, Refusal refusal) {
    std::vector<std::size_t> rest;
    for (std::size_t i = 0; i < counted_.size(); ++i) {
      if (good(i)) {
        rest.push_back(counted_[i]);
      } else {
        judged(i).refusal = refusal;
        judged(i).weight = 0;
        judged(i).share = 0;
      }
    }
    const bool refused = rest.size() < counted_.size();
    counted_ = std::move(rest);
    return refused;
  }

  void measure(const std::vector<double>& squares) {
    std::vector<double> norms;
    for (std::size_t i = 0; i < squares.size(); ++i) {
      norms.push_back(std::sqrt(squares[i]));
      judged(i).norm = norms.back();
    }
    report_.median_norm = detail::lower_median(norms);
  }

  void clip() {
    for (std::size_t i = 0; i < scales_.size(); ++i) {
      if (judged(i).norm > report_.median_norm)
        scales_[i] = static_cast<float>(report_.median_norm / judged(i).norm);
      judged(i).clip_factor = scales_[i];
    }
  }

  void cap_weights() {
    std::vector<std::uint64_t> declared;
    for (std::size_t i = 0; i < counted_.size(); ++i) declared.push_back(judged(i).tokens);
    std::sort(declared.begin(), declared.end());
    const std::uint64_t median = declared[(declared.size() - 1) / 2];
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    const std::uint64_t twice = median > most / 2 ? most : 2 * median;
    for (std::size_t i = 0; i < counted_.size(); ++i)
      judged(i).weight = std::min({judged(i).tokens, twice, most_tokens_});
  }

  std::vector<double> by_tokens() {
    std::vector<double> weights;
    double sum = 0;
    for (std::size_t i = 0; i < counted_.size(); ++i) {
      weights.push_back(static_cast<double>(judged(i).weight));
      sum += weights.back();
    }
    for (double& weight : weights) weight /= sum;
    return weights;
  }

  // The weights of a rule that is a weighted sum of the rows that `gram` belongs to.
  std::vector<double> weights_of_rule(const Gram& gram) {
    const std::size_t n = counted_.size();
    switch (plan_.choice.rule) {
      case Rule::WeightedMean: return by_tokens();
      case Rule::Krum: return detail::krum_weights(gram, plan_.f, 1);
      case Rule::MultiKrum: return detail::krum_weights(gram, plan_.f, n - plan_.f);
      case Rule::GeometricMedian:
        return detail::geometric_median_weights(gram, options_.geometric_median_iterations);
      case Rule::CenteredClipping:
        return detail::centered_clipping_weights(gram, options_.centered_clipping_iterations);
      case Rule::TrimmedMean:
      case Rule::CoordinateMedian: break;
    }
    return std::vector<double>(n, 1.0 / static_cast<double>(n));
  }

  // False when a value is not finite, which only rules without a look at norms can still meet.
  bool run_rule(const AggregationPasses& passes, Gram& gram) {
    const std::size_t n = passes.rows();
    std::vector<std::uint32_t> left_out;
    std::vector<double> matrix;
    cap_weights();
    if (plan_.needs_distances()) gram = detail::scaled(gram, {scales_.begin(), scales_.end()});
    if (plan_.choice.nearest_neighbour_mixing) {
      left_out = detail::left_out_by_mixing(gram, plan_.f);
      matrix = detail::mixing_matrix(n, plan_.f, left_out);
    }
    if (plan_.by_coordinate()) {
      std::vector<double> shares(n, 1.0 / static_cast<double>(n));
      set_shares(unmixed(shares, matrix));
      const Kept kept = plan_.choice.rule == Rule::CoordinateMedian ? Kept{(n - 1) / 2, (n - 1) / 2 + 1}
                                                                    : Kept{plan_.trimmed, n - plan_.trimmed};
      if (!plan_.choice.nearest_neighbour_mixing) return passes.sorted(scales_, kept, out_);
      passes.mixed_sorted(scales_, left_out, plan_.f, kept, out_);
      return true;
    }
    if (plan_.choice.nearest_neighbour_mixing) gram = detail::mixed(gram, matrix);
    std::vector<double> weights = unmixed(weights_of_rule(gram), matrix);
    set_shares(weights);
    for (std::size_t i = 0; i < n; ++i) weights[i] *= static_cast<double>(scales_[i]);
    return passes.combine(weights, out_);
  }

  // Weights of the rows before mixing, from those of the mixed rows.
  static std::vector<double> unmixed(const std::vector<double>& weights, const std::vector<double>& matrix) {
    if (matrix.empty()) return weights;
    const std::size_t n = weights.size();
    std::vector<double> result(n, 0.0);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) result[j] += weights[i] * matrix[i * n + j];
    return result;
  }

  void set_shares(const std::vector<double>& shares) {
    for (std::size_t i = 0; i < shares.size(); ++i) judged(i).share = shares[i];
  }

  void finish_report() {
    report_.counted = counted_.size();
    if (counted_.empty()) return;
    const bool plain = plan_.choice.rule == Rule::WeightedMean && !plan_.choice.nearest_neighbour_mixing;
    report_.f = plain ? 0 : plan_.f;
    report_.ran = plan_.choice;
    report_.trimmed = plan_.trimmed;
    report_.too_few_to_vote = counted_.size() >= 2 && counted_.size() <= 4;
  }

  const AggregationOptions& options_;
  const std::vector<Claim>& claims_;
  detail::DeltaRows& rows_;
  std::uint64_t most_tokens_;
  Span<float> out_;
  const detail::AggregationKernels& kernels_;
  std::vector<std::size_t> order_;    // claims by id
  std::vector<std::size_t> counted_;  // positions in order_ and report_.judged
  Plan plan_;
  std::vector<float> scales_;  // by row
  AggregateReport report_;
};

constexpr std::pair<Rule, std::string_view> rule_names[] = {{Rule::WeightedMean, "weighted-mean"},
                                                            {Rule::TrimmedMean, "trimmed-mean"},
                                                            {Rule::CoordinateMedian, "median"},
                                                            {Rule::Krum, "krum"},
                                                            {Rule::MultiKrum, "multi-krum"},
                                                            {Rule::GeometricMedian, "geometric-median"},
                                                            {Rule::CenteredClipping, "centered-clipping"}};

}  // namespace

std::string_view to_string(Rule rule) {
  for (const auto& [value, name] : rule_names)
    if (value == rule) return name;
  return "unknown";
}

std::string_view to_string(Refusal refusal) {
  switch (refusal) {
    case Refusal::None: return "counted";
    case Refusal::WrongSize: return "wrong number of values";
    case Refusal::NoTokens: return "no tokens trained";
    case Refusal::NotFinite: return "a value is not a finite number";
    case Refusal::DuplicateId: return "the same contributor twice";
    case Refusal::Unreadable: return "its payload can't be read";
  }
  return "unknown";
}

Expected<AggregateReport> aggregate(const AggregationOptions& options, Span<const Contribution> contributions,
                                    std::uint64_t most_tokens, Span<float> out) {
  NS_RETURN_IF_ERROR(check(options, contributions.size(), most_tokens, out.size()));
  std::vector<Claim> claims;
  std::vector<const float*> rows;
  for (const Contribution& c : contributions) {
    claims.push_back({c.id, c.tokens, c.delta.size() == out.size()});
    rows.push_back(c.delta.data());
  }
  detail::MemoryRows deltas(std::move(rows), out.size());
  const DefaultArithmetic arithmetic;
  return Aggregation(options, claims, deltas, most_tokens, out).run();
}

Expected<AggregateReport> aggregate_encoded(const AggregationOptions& options, const CodecOptions& codec,
                                            Span<const EncodedContribution> contributions,
                                            std::uint64_t most_tokens, Span<float> out) {
  NS_RETURN_IF_ERROR(check(options, contributions.size(), most_tokens, out.size()));
  std::vector<Claim> claims;
  std::vector<ByteSpan> payloads;
  for (const EncodedContribution& c : contributions) {
    claims.push_back({c.id, c.tokens});
    payloads.push_back(c.payload);
  }
  detail::PayloadRows deltas(codec, std::move(payloads), out.size());
  const DefaultArithmetic arithmetic;
  return Aggregation(options, claims, deltas, most_tokens, out).run();
}

}  // namespace neuroshard::outer
