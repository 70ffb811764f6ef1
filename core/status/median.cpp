#include "core/status/median.h"

#include <algorithm>

namespace neuroshard::status {

std::optional<double> lower_median(std::vector<Weighted> values) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end(),
            [](const Weighted& a, const Weighted& b) { return a.value < b.value; });
  double whole = 0;
  for (const Weighted& one : values) whole += one.weight;
  double below = 0;
  for (const Weighted& one : values) {
    below += one.weight;
    if (2 * below >= whole * (1 - weight_tolerance)) return one.value;
  }
  return values.back().value;
}

}  // namespace neuroshard::status
