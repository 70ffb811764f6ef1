// How fast the holders of a model's parts count as, by what they say, and which holders work together
// (docs/protocol/placement.md, "Speeds").
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

struct SaidSpeed {
  std::uint32_t speed = 0;   // in any unit; 0: the holder has not said anything yet
  std::uint32_t wallet = 0;  // of the holder, any number
};

// By holder. The median is one of wallets, each with the lower median of its holders, so nobody moves it with more nodes. A holder that
// has not said anything counts as the median; if none has, all count as 1.
std::vector<double> counted_speeds(const std::vector<SaidSpeed>& said);

// FLOP of one token in the range, forward and backward.
double range_work(const compute::ModelShape& shape, const compute::StageRange& range);

// The holders of one part side by side from 0 to 1, the fastest first. Each is as wide as its share of their speeds together. At the
// same place of two parts' lines are holders of about the same rank. If each driver goes through the holders at its own place, each
// holder gets work in proportion to its speed, and a fast one seldom waits for a slow one.
//
// turn: moves holders of about the same speed on by one, so that they change places.
class SpeedLine {
 public:
  // speeds: at least one, each > 0.
  explicit SpeedLine(std::vector<double> speeds, std::uint64_t turn = 0);

  double middle(std::size_t holder) const;  // where it stands
  std::size_t at(double place) const;       // place: in [0, 1)

 private:
  const std::vector<double> speeds_;
  std::vector<std::size_t> order_;
  double together_ = 0;
};

}  // namespace neuroshard::plan
