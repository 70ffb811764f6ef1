// The two levels that stand for the magnitudes of a chunk in the TopK codec.
//
// A level is 2^(n/8), n whole: 8 steps an octave, at most 4.4 % from any magnitude. The two are the means of
// the magnitudes above and below a threshold (two steps of Lloyd's algorithm from their mean). Sums are in
// double, in 8 lanes and a fixed tree: the same bits on every processor.
#pragma once

#include <cstdint>

#include "core/base/span.h"
#include "core/outer/detail/codec_kernels.h"

namespace neuroshard::outer::detail {

constexpr int level_steps = 8;                   // per octave
constexpr int lowest_level = -64 * level_steps;  // 2^-64
constexpr int highest_level = 64 * level_steps - 1;
constexpr int no_level = -32768;

float level_value(int level);
// The level nearest to a positive magnitude, by ratio; no_level for 0.
int nearest_level(double magnitude);

struct TwoLevels {
  int low = no_level;
  int high = no_level;  // ≥ low
  float threshold = 0;  // magnitudes above it have the high level
};
// values: finite; 1 to 4096 of them.
TwoLevels two_levels(const CodecKernels& kernels, Span<const float> values);

}  // namespace neuroshard::outer::detail
