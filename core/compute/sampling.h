// Choosing the next token from its logits.
#pragma once

#include <cstdint>

#include "core/base/expected.h"
#include "core/base/rng.h"
#include "core/base/span.h"

namespace neuroshard::compute {

struct SamplingOptions {
  float temperature = 1.0f;  // 0 = always the most likely token
  std::uint32_t top_k = 0;   // only the k most likely; 0 = all
  float top_p =
      1.0f;  // only the most likely that together reach this probability (Holtzman et al. 2020); 1 = all
};

// InvalidArgument names the option and what it may be.
Expected<void> validate(const SamplingOptions& options);

// Order: temperature, then top-k, then top-p over what is left; one draw from rng unless the temperature is
// 0. Equal logits rank by the lower token. The same logits, options and rng state give the same token on
// every machine. A token whose logit is −inf or not a number is never chosen. Errors: InvalidArgument for bad
// options or when no logit is finite.   Cost: one or two passes over V, plus a sort of what may be chosen.
Expected<std::int32_t> sample_token(Span<const float> logits, const SamplingOptions& options, Rng& rng);

}  // namespace neuroshard::compute
