// How fast the holders of a model's parts count as, by what they say, and how the sessions of the pipeline are shared out among the
// holders of one part (docs/protocol/placement.md, "Speeds").
//
// A driver's sessions pass its own node for its own part. So each holder has the session of its own driver, and those of the others'
// that its speed has room for.
//
// Pure: additions, multiplications, divisions and comparisons of doubles in a fixed order. Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/compute/model_shape.h"
#include "core/compute/stage_range.h"

namespace neuroshard::plan {

// Nobody checks what a holder says, so none counts as more than so many times the lower median.
inline constexpr double most_over_median = 8;

// said: by holder, in any unit; 0: it has not said anything yet, and counts as the lower median of the others. All of them
// 1 if none has.
std::vector<double> counted_speeds(const std::vector<std::uint32_t>& said);

// FLOP of one token in the range, forward and backward.
double range_work(const compute::ModelShape& shape, const compute::StageRange& range);

// speeds: of the holders of one part, at least one, each > 0. drivers: of the network, the holders' own included. By holder: the
// share of the others' sessions that pass it. The shares are 1 together.
std::vector<double> shares_of_others(const std::vector<double>& speeds, std::size_t drivers);

// The holder at a place of the line on which each has its share. place: at least 0.
std::size_t holder_at(const std::vector<double>& shares, double place);

}  // namespace neuroshard::plan
