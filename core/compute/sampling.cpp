#include "core/compute/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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

std::vector<Candidate> finite_candidates(Span<const float> logits) {
  std::vector<Candidate> candidates;
  candidates.reserve(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isfinite(logits[i])) candidates.push_back({static_cast<std::int32_t>(i), logits[i]});
  }
  return candidates;
}

// Leaves the `keep` most likely, sorted.
void keep_best(std::vector<Candidate>& candidates, std::size_t keep) {
  keep = std::min(keep, candidates.size());
  const auto end = candidates.begin() + static_cast<std::ptrdiff_t>(keep);
  if (end != candidates.end()) std::nth_element(candidates.begin(), end, candidates.end(), more_likely);
  candidates.resize(keep);
  std::sort(candidates.begin(), candidates.end(), more_likely);
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
  return {};
}

Expected<std::int32_t> sample_token(Span<const float> logits, const SamplingOptions& options, Rng& rng) {
  NS_RETURN_IF_ERROR(validate(options));
  std::vector<Candidate> candidates = finite_candidates(logits);
  if (candidates.empty()) {
    return make_error(ErrorCode::InvalidArgument,
                      "The model gave no usable prediction (no finite logit); its weights may be damaged.");
  }
  if (options.temperature == 0.0f)
    return std::min_element(candidates.begin(), candidates.end(), more_likely)->token;
  keep_best(candidates, options.top_k == 0 ? candidates.size() : options.top_k);

  // Double precision, in sorted order: the same sums everywhere but for the last bits of exp.
  std::vector<double> cumulative;
  double sum = 0;
  for (const Candidate& candidate : candidates) {
    sum += std::exp((double{candidate.logit} - candidates.front().logit) / options.temperature);
    cumulative.push_back(sum);
  }
  const double reach = options.top_p < 1.0f ? options.top_p * sum : sum;
  const auto last = std::lower_bound(cumulative.begin(), cumulative.end(), reach);
  const double total = last == cumulative.end() ? sum : *last;
  const auto chosen = std::upper_bound(cumulative.begin(), cumulative.end(), rng.uniform() * total);
  const auto index = std::min<std::ptrdiff_t>(chosen - cumulative.begin(),
                                              static_cast<std::ptrdiff_t>(candidates.size()) - 1);
  return candidates[static_cast<std::size_t>(index)].token;
}

}  // namespace neuroshard::compute
