// The learning-rate schedule (docs/protocol/model.md): linear warm-up to the peak, then half a cosine down to
// a floor.
//   s <  warmup:          peak · s / warmup
//   warmup ≤ s < decay:   peak · (f + (1 − f) · ½ (1 + cos(π (s − warmup) / (decay − warmup)))),  f = floor
//   s ≥ decay:            peak · f
// s is the 1-based number of the step that uses the rate: (round − 1)·H + own step in a network, so that a joiner
// takes the network's schedule; the count of steps in solo. Pure functions.  Threads: any.
#pragma once

#include <cstdint>

#include "core/base/expected.h"

namespace neuroshard::train {

// Steps over which a stage's rate rises again after a slot arrived with zero moments.
inline constexpr std::uint32_t rewarm_steps = 20;

struct Schedule {
  double peak = 0;                 // learning rate at the end of the warm-up, > 0
  std::uint64_t warmup_steps = 0;  // 0 = start at the peak
  std::uint64_t decay_steps =
      0;               // where the floor is reached; ≤ warmup_steps: straight to the floor after warm-up
  double floor = 0.1;  // share of the peak, in [0, 1]
};

// InvalidArgument names the field.
Expected<void> validate(const Schedule& schedule);

double learning_rate(const Schedule& schedule, std::uint64_t step);

// Factor on the rate of the `steps_since_arrival`-th step (1-based) after a slot arrived with zero moments:
// 1/20, 2/20, … 1, and 1 for ever after. 0 means that nothing arrived: 1.
double rewarm_factor(std::uint64_t steps_since_arrival);

}  // namespace neuroshard::train
