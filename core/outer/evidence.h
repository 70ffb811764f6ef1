// The seed's gradient validation: how a delta compares with a reference. Shown as evidence for reputation,
// never a gate: honest deltas are nearly orthogonal, and a threshold on their cosine rejects most honest
// peers.
#pragma once

#include "core/base/expected.h"
#include "core/base/span.h"

namespace neuroshard::outer {

struct Evidence {
  double cosine = 0;          // 0 when one of the two is zero
  double norm_ratio = 0;      // of the delta to the reference; infinite for a zero reference
  double variance_ratio = 0;  // of the values' variances, likewise
};
// The limits that the seed documents name.
inline constexpr double usual_cosine = 0.3;
inline constexpr double least_norm_ratio = 0.1, most_norm_ratio = 10;
inline constexpr double most_variance_ratio = 100;
bool is_usual(const Evidence& evidence);

// reference: the judge's own delta of the round, or the aggregate without this contributor. fp64 sums in
// eight lanes: the same bits everywhere.  InvalidArgument: sizes that differ, no values, or a value that is
// not finite.
Expected<Evidence> compare(Span<const float> delta, Span<const float> reference);

}  // namespace neuroshard::outer
