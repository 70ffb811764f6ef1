// Choosing the next token from its logits, and how likely the model held it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/expected.h"
#include "core/base/rng.h"
#include "core/base/span.h"

namespace neuroshard::compute {

inline constexpr std::size_t max_logit_biases = 300;  // as OpenAI's interface allows
inline constexpr float max_logit_bias = 100;
inline constexpr std::uint32_t max_top_logprobs = 20;  // likeliest tokens beside the chosen one

struct LogitBias {
  std::int32_t token = 0;
  float bias = 0;  // added to the logit; −max_logit_bias … max_logit_bias
};

struct SamplingOptions {
  float temperature = 1.0f;  // 0 = always the most likely token
  std::uint32_t top_k = 0;   // only the k most likely; 0 = all
  float top_p =
      1.0f;  // only the most likely that together reach this probability (Holtzman et al. 2020); 1 = all
  float min_p = 0;  // only tokens that are at least this fraction as likely as the likeliest; 0 = all
  // Of tokens that the text has already: a logit above 0 is divided by it, one below is multiplied (Keskar et
  // al. 2019); 1 = off.
  float repetition_penalty = 1;
  std::vector<LogitBias> logit_bias{};
};

// InvalidArgument names the option and what it may be.
Expected<void> validate(const SamplingOptions& options);

// Applies the repetition penalty to the tokens t with seen[t], and then the biases. `seen` may be shorter than
// the logits; biases of tokens beyond them are ignored.
void adjust_logits(Span<float> logits, const SamplingOptions& options, const std::vector<bool>& seen);

// Order: temperature, then top-k, then top-p over what is left, then min-p; one draw from rng unless the
// temperature is 0. Equal logits rank by the lower token. The same logits, options and rng state give the same token on
// every machine. A token whose logit is −inf or not a number is never chosen. Errors: InvalidArgument for bad
// options or when no logit is finite.   Cost: one or two passes over V, plus a sort of what may be chosen.
Expected<std::int32_t> sample_token(Span<const float> logits, const SamplingOptions& options, Rng& rng);

struct TokenLogprob {
  std::int32_t token = 0;
  double logprob = 0;  // natural logarithm of the probability
};
struct Logprobs {
  double chosen = 0;
  std::vector<TokenLogprob> top;  // the likeliest, the likeliest first
};
// The softmax of the unchanged logits: its value for `chosen`, and the `count` likeliest of the first `vocabulary`
// tokens. Sums in double precision. chosen < logits.size(). A chosen token whose logit is not finite has −inf.
Logprobs log_probabilities(Span<const float> logits, std::int32_t chosen, std::uint32_t count,
                           std::uint32_t vocabulary);

}  // namespace neuroshard::compute
