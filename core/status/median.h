// The weighted lower median: the least value at or below which half of the weight lies. A report that is far
// off moves it by one place at most. Pure functions.
#pragma once

#include <optional>
#include <vector>

namespace neuroshard::status {

inline constexpr double weight_tolerance = 1e-12;  // of sums of weights, which are fractions

struct Weighted {
  double value = 0, weight = 0;
};
// Nothing: no values.
std::optional<double> lower_median(std::vector<Weighted> values);

}  // namespace neuroshard::status
