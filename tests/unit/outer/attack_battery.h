// Outer rounds in one process, with attackers: the share that a rule keeps of the loss that honest
// contributors reach. No network; the deltas, codecs, rules and outer step are the ones of core.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/outer/aggregate.h"
#include "core/outer/attack.h"
#include "core/outer/codec.h"
#include "core/outer/outer_optimizer.h"
#include "core/outer/soft_learner.h"

namespace neuroshard::outer {

struct BatterySettings {
  std::uint64_t seed = 1;
  std::size_t contributors = 8;
  std::size_t liars = 0;  // the last of them
  std::optional<Attack> attack;
  AggregationOptions rule;
  std::uint32_t rounds = 60;
  std::uint32_t steps = 10;  // inner steps of a round
  OuterOptimizer outer{0.7f, 0.8f};
  // Dense deltas go as they are; with k, through the top-k codec and error feedback, honest and forged alike.
  std::optional<std::uint16_t> top_k;
  float beta = 0.95f;
  SoftLearnerOptions learner;
};

struct BatteryResult {
  double first_loss = 0;
  double loss = 0;  // held out, at the end; infinite when not finite
  std::vector<double> every_tenth;
  double honest_cosine = 0;  // mean over rounds and pairs of honest deltas before the codec
  bool finite = true;
};

BatteryResult run_battery(const BatterySettings& settings);

}  // namespace neuroshard::outer
