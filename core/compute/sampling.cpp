#include "core/compute/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace neuroshard::compute {
namespace {

struct Candidate {
  std::int32_t token = 0;
  float logit = 0;
};

bool more_likely(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

// The `keep` likeliest, sorted. One pass: most logits are below the worst that is kept so far.
std::vector<Candidate> most_likely(Span<const float> logits, std::size_t keep) {
  std::vector<Candidate> kept;
  kept.reserve(std::min(logits.size(), 2 * keep));
  float least = -std::numeric_limits<float>::infinity();
  const auto cut = [&] {
    const auto end = kept.begin() + static_cast<std::ptrdiff_t>(keep);
    std::nth_element(kept.begin(), end - 1, kept.end(), more_likely);
    kept.erase(end, kept.end());
    least = kept.back().logit;
  };
  for (std::size_t i = 0; i < logits.size(); ++i) {
    // Equal logits rank by the lower token, which came before.
    if (!(logits[i] > least) || !std::isfinite(logits[i])) continue;
    kept.push_back({static_cast<std::int32_t>(i), logits[i]});
    if (kept.size() == 2 * keep) cut();
  }
  if (kept.size() > keep) cut();
  std::sort(kept.begin(), kept.end(), more_likely);
  return kept;
}

constexpr double negligible = -60;  // of a million tokens with e^−60, one is drawn in 10^20 draws

// log of a probability up to a constant; 0 for the likeliest token.
double exponent_of(float logit, float highest, float temperature) {
  return (double{logit} - highest) / temperature;
}
// In double precision: the same everywhere but for the last bits of exp.
double weight_of(double exponent) {
  return exponent > negligible ? std::exp(exponent) : 0.0;
}

// Weights of all tokens, and their sums in bins of neighbouring logits, so that top-p sorts one bin only.
struct Weighing {
  static constexpr std::size_t bins = 1024;
  std::vector<double> weights;  // 0 where the logit is not finite
  std::vector<double> bin_sums = std::vector<double>(bins);
  double sum = 0;

  Weighing(Span<const float> logits, float highest, float temperature) {
    weights.reserve(logits.size());
    for (const float logit : logits) {
      const double exponent = exponent_of(logit, highest, temperature);
      weights.push_back(std::isfinite(logit) ? weight_of(exponent) : 0.0);
      sum += weights.back();
      if (weights.back() > 0) bin_sums[bin_of(exponent)] += weights.back();
    }
  }
  static std::size_t bin_of(double exponent) {
    return std::min(bins - 1, static_cast<std::size_t>(exponent / negligible * double{bins}));
  }
};

// The likeliest tokens down to `least`, and the sum of their weights.
struct Nucleus {
  Candidate least{std::numeric_limits<std::int32_t>::max(), -std::numeric_limits<float>::infinity()};
  double sum = 0;
};

Nucleus nucleus_of(Span<const float> logits, const Weighing& weighing, float highest,
                   const SamplingOptions& options) {
  const double reach = options.top_p * weighing.sum;
  Nucleus nucleus;
  std::size_t bin = 0;
  while (bin < Weighing::bins && nucleus.sum + weighing.bin_sums[bin] < reach) {
    nucleus.sum += weighing.bin_sums[bin++];
  }
  std::vector<Candidate> candidates;  // of the bin in which the sum is reached
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (weighing.weights[i] > 0 &&
        Weighing::bin_of(exponent_of(logits[i], highest, options.temperature)) == bin) {
      candidates.push_back({static_cast<std::int32_t>(i), logits[i]});
    }
  }
  std::sort(candidates.begin(), candidates.end(), more_likely);
  for (const Candidate& candidate : candidates) {
    nucleus.sum += weighing.weights[static_cast<std::size_t>(candidate.token)];
    nucleus.least = candidate;
    if (nucleus.sum >= reach) break;
  }
  return nucleus;
}

std::int32_t draw_of_all(Span<const float> logits, const SamplingOptions& options, const Candidate& best,
                         double uniform) {
  const Weighing weighing(logits, best.logit, options.temperature);
  Nucleus nucleus;
  nucleus.sum = weighing.sum;
  if (options.top_p < 1.0f) nucleus = nucleus_of(logits, weighing, best.logit, options);
  const auto is_left = [&](std::size_t i) {
    const double weight = weighing.weights[i];
    return weight > 0 && weight >= double{options.min_p} &&
           !more_likely(nucleus.least, {static_cast<std::int32_t>(i), logits[i]});
  };
  double total = nucleus.sum;
  if (options.min_p > 0) {
    total = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) total += is_left(i) ? weighing.weights[i] : 0.0;
  }
  double sum = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!is_left(i)) continue;
    sum += weighing.weights[i];
    if (sum > uniform * total) return static_cast<std::int32_t>(i);
  }
  return best.token;
}

// Draws among the sorted candidates that together reach top-p and that min-p leaves.
std::int32_t draw_of(const std::vector<Candidate>& candidates, const SamplingOptions& options,
                     double uniform) {
  std::vector<double> sums;
  sums.reserve(candidates.size());
  double sum = 0;
  std::ptrdiff_t likely_enough = 0;  // for min-p; the likeliest has the weight 1
  for (const Candidate& candidate : candidates) {
    const double weight =
        weight_of(exponent_of(candidate.logit, candidates.front().logit, options.temperature));
    if (weight >= double{options.min_p}) ++likely_enough;
    sum += weight;
    sums.push_back(sum);
  }
  const double reach = options.top_p < 1.0f ? options.top_p * sum : sum;
  const double total =
      *std::min(std::lower_bound(sums.begin(), sums.end(), reach), sums.begin() + (likely_enough - 1));
  const auto chosen = std::upper_bound(sums.begin(), sums.end(), uniform * total) - sums.begin();
  const auto index = std::min<std::ptrdiff_t>(chosen, static_cast<std::ptrdiff_t>(candidates.size()) - 1);
  return candidates[static_cast<std::size_t>(index)].token;
}

Expected<void> validate_bias(const std::vector<LogitBias>& biases) {
  if (biases.size() > max_logit_biases) {
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("{} tokens have a bias; at most {} may.", biases.size(), max_logit_biases));
  }
  for (const LogitBias& entry : biases) {
    if (entry.token >= 0 && std::abs(entry.bias) <= max_logit_bias) continue;
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("The bias of token {} is {}; it must be {} to {}.", entry.token, entry.bias,
                                  -max_logit_bias, max_logit_bias));
  }
  return {};
}

}  // namespace

Expected<void> validate(const SamplingOptions& options) {
  if (!(options.temperature >= 0.0f) || !std::isfinite(options.temperature)) {
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("The temperature is {}; it must be 0 (always the most likely token) or above.",
                    options.temperature));
  }
  if (!(options.top_p > 0.0f && options.top_p <= 1.0f)) {
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("top-p is {}; it must be above 0 and at most 1.", options.top_p));
  }
  if (!(options.min_p >= 0.0f && options.min_p <= 1.0f)) {
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("min-p is {}; it must be 0 (off) to 1.", options.min_p));
  }
  if (!(options.repetition_penalty > 0.0f) || !std::isfinite(options.repetition_penalty)) {
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("The repetition penalty is {}; it must be above 0 (1 = off).",
                                  options.repetition_penalty));
  }
  return validate_bias(options.logit_bias);
}

void adjust_logits(Span<float> logits, const SamplingOptions& options, const std::vector<bool>& seen) {
  if (options.repetition_penalty != 1.0f) {
    for (std::size_t i = 0; i < std::min<std::size_t>(seen.size(), logits.size()); ++i) {
      if (!seen[i]) continue;
      logits[i] =
          logits[i] > 0 ? logits[i] / options.repetition_penalty : logits[i] * options.repetition_penalty;
    }
  }
  for (const LogitBias& entry : options.logit_bias) {
    const auto at = static_cast<std::size_t>(entry.token);
    if (entry.token >= 0 && at < logits.size()) logits[at] += entry.bias;
  }
}

Expected<std::int32_t> sample_token(Span<const float> logits, const SamplingOptions& options, Rng& rng) {
  NS_RETURN_IF_ERROR(validate(options));
  const bool cut = options.temperature > 0 && options.top_k != 0 && options.top_k < logits.size();
  const std::vector<Candidate> candidates = most_likely(logits, cut ? options.top_k : 1);
  if (candidates.empty()) {
    return make_error(ErrorCode::InvalidArgument,
                      "The model gave no usable prediction (no finite logit); its weights may be damaged.");
  }
  if (options.temperature == 0.0f) return candidates.front().token;
  const double uniform = rng.uniform();
  return cut ? draw_of(candidates, options, uniform)
             : draw_of_all(logits, options, candidates.front(), uniform);
}

Logprobs log_probabilities(Span<const float> logits, std::int32_t chosen, std::uint32_t count,
                           std::uint32_t vocabulary) {
  constexpr double never = -std::numeric_limits<double>::infinity();
  double highest = never;
  for (const float logit : logits) {
    if (std::isfinite(logit)) highest = std::max(highest, double{logit});
  }
  double sum = 0;
  for (const float logit : logits) sum += std::isfinite(logit) ? std::exp(double{logit} - highest) : 0.0;
  const double log_sum = highest + std::log(sum);
  const float own = logits[static_cast<std::size_t>(chosen)];
  Logprobs result;
  result.chosen = std::isfinite(own) ? double{own} - log_sum : never;
  if (count == 0) return result;
  for (const Candidate& candidate :
       most_likely(logits.subspan(0, std::min<std::size_t>(vocabulary, logits.size())), count)) {
    result.top.push_back({candidate.token, double{candidate.logit} - log_sum});
  }
  return result;
}

}  // namespace neuroshard::compute
