// The outer step of DiLoCo (Douillard et al. 2023, Algorithm 1), in the convention of PyTorch's SGD with
// Nesterov momentum and dampening 0:
//
//   v      ← mu·v + D
//   anchor ← anchor − lr·(D + mu·v)
//
// D is the aggregate of deltas (anchor − local). mu 0 is plain SGD, and with lr 1 and one worker gives
// exactly that worker's weights when D is exact. Each value is a function of its own three floats in fixed
// order, so every processor gives the same bits; nothing here contracts.
#pragma once

#include <cstddef>

#include "core/base/expected.h"
#include "core/base/span.h"

namespace neuroshard::outer {

struct OuterOptimizer {
  float lr = 0.7f;  // of the network's profile; 0 < lr ≤ 2
  float mu = 0.9f;  // 0 ≤ mu < 1
};

// aggregate, momentum, anchor: [P] each; momentum and anchor are updated in place.
// InvalidArgument: sizes that differ, or lr or mu out of range; nothing is changed then.
// Cost: one pass, no allocation.  Threads: any, one at a time for the same spans.
Expected<void> outer_step(const OuterOptimizer& optimizer, Span<const float> aggregate, Span<float> momentum,
                          Span<float> anchor);

}  // namespace neuroshard::outer
