#include "core/outer/outer_optimizer.h"

#include <fmt/format.h>

#include "core/outer/detail/default_arithmetic.h"

namespace neuroshard::outer {

Expected<void> outer_step(const OuterOptimizer& optimizer, Span<const float> aggregate, Span<float> momentum,
                          Span<float> anchor) {
  if (aggregate.size() != anchor.size() || momentum.size() != anchor.size()) {
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("an outer step needs three spans of one size; these have {}, {} and {} values",
                    aggregate.size(), momentum.size(), anchor.size()));
  }
  const float lr = optimizer.lr, mu = optimizer.mu;
  if (!(lr > 0 && lr <= 2) || !(mu >= 0 && mu < 1)) {
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("an outer step needs 0 < lr ≤ 2 and 0 ≤ mu < 1; these are {} and {}", lr, mu));
  }
  const detail::DefaultArithmetic arithmetic;
  for (std::size_t i = 0; i < anchor.size(); ++i) {
    const float v = mu * momentum[i] + aggregate[i];
    momentum[i] = v;
    anchor[i] -= lr * (aggregate[i] + mu * v);
  }
  return {};
}

}  // namespace neuroshard::outer
