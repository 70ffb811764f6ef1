#include "core/outer/aggregate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "core/outer/detail/aggregation_passes.h"
#include "core/outer/detail/aggregation_plan.h"
#include "core/outer/detail/default_arithmetic.h"

namespace neuroshard::outer {
namespace {

using detail::AggregationPasses;
using detail::DefaultArithmetic;
using detail::Gram;
using detail::Kept;
using detail::Plan;

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
              std::uint64_t most_tokens, detail::PassOutput& out, detail::Measure measure = {})
      : options_(options),
        claims_(claims),
        rows_(rows),
        most_tokens_(most_tokens),
        out_(out),
        measure_(std::move(measure)),
        kernels_(detail::kernels_of(options.instruction_set.value_or(detail::best_instruction_set()))) {}

  Expected<AggregateReport> run() {
    judge();
    while (!counted_.empty()) {
      NS_ASSIGN_OR_RETURN(plan_, detail::plan_for(options_, counted_.size(), refused()));
      NS_ASSIGN_OR_RETURN(const bool done, step());
      if (done) break;
    }
    finish_report();
    return std::move(report_);
  }

  // The first pass alone.
  Expected<std::vector<double>> sums() {
    judge();
    if (counted_.empty()) return std::vector<double>();
    NS_ASSIGN_OR_RETURN(plan_, detail::plan_for(options_, counted_.size(), refused()));
    return measured(passes());
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

  // True: done. False: some are refused now, and a plan for the rest is needed. No value is written before all are
  // judged.
  Expected<bool> step() {
    const AggregationPasses passes = this->passes();
    NS_ASSIGN_OR_RETURN(const std::vector<double> sums, measured(passes));
    Gram gram;
    std::vector<double> squares = sums;
    if (plan_.needs_distances()) {
      gram = detail::gram_of_sums(sums, passes.rows());
      squares.resize(passes.rows());
      for (std::size_t i = 0; i < squares.size(); ++i) squares[i] = gram(i, i);
    }
    if (refuse_unreadable() || refuse_unless_finite(squares)) return false;
    measure(squares);
    clip();
    NS_ASSIGN_OR_RETURN(const bool finite, run_rule(passes, gram));
    if (!finite || refuse_unreadable())
      return make_error(ErrorCode::Corrupt, "a payload changed while it was aggregated");
    return true;
  }

  AggregationPasses passes() const {
    std::vector<std::size_t> rows;
    for (const std::size_t k : counted_) rows.push_back(order_[k]);
    return {kernels_, rows_, std::move(rows)};
  }

  // The sums over all values: by a pass, or as they are known.
  Expected<std::vector<double>> measured(const AggregationPasses& passes) const {
    const std::size_t n = passes.rows(), needed = plan_.needs_distances() ? n * (n + 1) / 2 : n;
    const Span<const double> given = measure_.known.empty() ? measure_.before : measure_.known;
    if (!given.empty() && given.size() != needed)
      return make_error(ErrorCode::InvalidArgument,
                        fmt::format("The rule takes {} sums; {} are given.", needed, given.size()));
    if (!measure_.known.empty()) return std::vector<double>(given.begin(), given.end());
    return plan_.needs_distances() ? passes.gram_sums(measure_) : passes.squares(measure_);
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
    scales_.assign(counted_.size(), 1.0f);
    report_.clipped_to.reset();
    if (plan_.choice.clip_to_median_norm)
      report_.clipped_to = report_.median_norm;
    else if (plan_.has_most_norm)
      report_.clipped_to = options_.most_norm;
    if (!report_.clipped_to) return;
    for (std::size_t i = 0; i < scales_.size(); ++i) {
      if (judged(i).norm > *report_.clipped_to)
        scales_[i] = static_cast<float>(*report_.clipped_to / judged(i).norm);
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

  // False when a value is not finite.
  Expected<bool> run_rule(const AggregationPasses& passes, Gram& gram) {
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
      return passes.mixed_sorted(scales_, left_out, plan_.f, kept, out_);
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
  detail::PassOutput& out_;
  const detail::Measure measure_;
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

namespace {

// Deltas that stand in memory.
struct InMemory {
  InMemory(Span<const Contribution> contributions, std::size_t count)
      : rows(row_pointers(contributions), count) {
    for (const Contribution& c : contributions) claims.push_back({c.id, c.tokens, c.delta.size() == count});
  }
  static std::vector<const float*> row_pointers(Span<const Contribution> contributions) {
    std::vector<const float*> pointers;
    for (const Contribution& c : contributions) pointers.push_back(c.delta.data());
    return pointers;
  }
  std::vector<Claim> claims;
  detail::MemoryRows rows;
};

}  // namespace

Expected<AggregateReport> aggregate(const AggregationOptions& options, Span<const Contribution> contributions,
                                    std::uint64_t most_tokens, Span<float> out) {
  NS_RETURN_IF_ERROR(detail::check_aggregation(options, contributions.size(), most_tokens, out.size()));
  InMemory deltas(contributions, out.size());
  detail::MemoryOutput output(out);
  const DefaultArithmetic arithmetic;
  return Aggregation(options, deltas.claims, deltas.rows, most_tokens, output).run();
}

Expected<std::vector<double>> measure_chunk(const AggregationOptions& options, Span<const Contribution> chunk,
                                            Span<const double> before) {
  const std::size_t count = chunk.empty() ? 0 : chunk[0].delta.size();
  NS_RETURN_IF_ERROR(detail::check_aggregation(options, chunk.size(), 1, count));
  InMemory deltas(chunk, count);
  detail::MemoryOutput nothing({});
  const DefaultArithmetic arithmetic;
  return Aggregation(options, deltas.claims, deltas.rows, 1, nothing, {before, {}, nullptr}).sums();
}

Expected<AggregateReport> aggregate_chunk(const AggregationOptions& options, Span<const Contribution> chunk,
                                          std::uint64_t most_tokens, Span<const double> sums,
                                          Span<float> out) {
  NS_RETURN_IF_ERROR(detail::check_aggregation(options, chunk.size(), most_tokens, out.size()));
  InMemory deltas(chunk, out.size());
  detail::MemoryOutput output(out);
  const DefaultArithmetic arithmetic;
  return Aggregation(options, deltas.claims, deltas.rows, most_tokens, output, {{}, sums, nullptr}).run();
}

Expected<AggregateReport> aggregate_encoded(const AggregationOptions& options, const CodecOptions& codec,
                                            const std::vector<EncodedContribution>& contributions,
                                            std::uint64_t most_tokens, std::uint64_t count,
                                            const WriteValues& out, const WriteSums& trace) {
  NS_RETURN_IF_ERROR(detail::check_aggregation(options, contributions.size(), most_tokens, count));
  std::vector<Claim> claims;
  std::vector<ByteSourcePtr> payloads;
  for (const EncodedContribution& c : contributions) {
    claims.push_back({c.id, c.tokens});
    payloads.push_back(c.payload);
  }
  detail::PayloadRows deltas(codec, payloads, static_cast<std::size_t>(count));
  detail::SliceOutput output(out);
  const DefaultArithmetic arithmetic;
  return Aggregation(options, claims, deltas, most_tokens, output, {{}, {}, trace}).run();
}

}  // namespace neuroshard::outer
