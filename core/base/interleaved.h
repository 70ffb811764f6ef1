// Comparing speeds on a machine that is not ours alone: contenders and a yardstick take turns, round after
// round, and only ratios within one round count. A round in which the yardstick moved is dropped.  C++17.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/expected.h"

namespace neuroshard {

// Something to be timed. work() does a fixed amount and returns it in units (bytes, tokens, operations); its
// speed is units per second. Some ten milliseconds of work or more, else the clock is what is measured.
struct Contender {
  std::string name;
  std::function<Expected<double>()> work;
  std::function<Expected<void>()> prepare = {};  // before each work(), untimed; may be empty
};

struct InterleavedOptions {
  std::uint32_t rounds = 7;                    // kept rounds wanted
  Duration budget = std::chrono::seconds(10);  // no new round is begun after it, once a round is there
  double max_move =
      0.15;  // a round's yardstick may differ so much from its median, and from itself within the round
};

struct Speed {
  std::string name;
  double median = 0;  // units per second over the kept rounds
  double best = 0;
  double ratio_median = 0;  // to the yardstick of the same round
  double ratio_best = 0;
};

struct InterleavedResult {
  Speed yardstick;  // ratios 1
  std::vector<Speed> contenders;
  std::uint32_t kept = 0;
  std::uint32_t dropped = 0;
  // False when fewer rounds than wanted were kept: the figures are of those, or of all if none was, and prove
  // nothing.
  bool steady = false;
};

// Each round runs the yardstick, every contender (in turn forwards and backwards), and the yardstick again.
// One untimed round comes first.  Errors: a contender's, Cancelled.  Threads: this one.
Expected<InterleavedResult> run_interleaved(const Clock& clock, const Contender& yardstick,
                                            const std::vector<Contender>& contenders,
                                            const InterleavedOptions& options, const CancelToken& cancel);

// Middle value, or the mean of the two in the middle; 0 for none.
double median_of(std::vector<double> values);

}  // namespace neuroshard
