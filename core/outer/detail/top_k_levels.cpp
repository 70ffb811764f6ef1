#include "core/outer/detail/top_k_levels.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace neuroshard::outer::detail {
namespace {

// Bits of the significands of 2^(i/8), and the bounds between neighbours, 2^((i + 1/2)/8).
constexpr std::array<std::uint32_t, 8> steps = {0x000000, 0x0b95c2, 0x1837f0, 0x25fed7,
                                                0x3504f3, 0x45672a, 0x5744fd, 0x6ac0c7};
constexpr std::array<double, 8> bounds = {1.0442737824274138, 1.1387886347566916, 1.2418578120734840,
                                          1.3542555469368927, 1.4768261459394993, 1.6104903319492543,
                                          1.7562521603732995, 1.9152065613971474};

constexpr std::size_t lanes = 8;

struct Side {
  double total = 0;
  double count = 0;
  double mean() const { return total / count; }
};
struct Sides {
  Side low, high;  // magnitudes up to the threshold, and above it
};

Sides split(Span<const float> values, float threshold) {
  std::array<double, lanes> low{}, high{}, above{};
  const auto add = [&](std::size_t lane, float value) {
    const float magnitude = std::fabs(value);
    const double wide = static_cast<double>(magnitude);
    const bool is_high = magnitude > threshold;
    low[lane] += is_high ? 0.0 : wide;
    high[lane] += is_high ? wide : 0.0;
    above[lane] += is_high ? 1.0 : 0.0;
  };
  const std::size_t whole = values.size() / lanes * lanes;
  for (std::size_t i = 0; i < whole; i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane) add(lane, values[i + lane]);
  for (std::size_t i = whole; i < values.size(); ++i) add(i - whole, values[i]);
  for (std::size_t width = lanes / 2; width > 0; width /= 2) {
    for (std::size_t lane = 0; lane < width; ++lane) {
      low[lane] += low[lane + width];
      high[lane] += high[lane + width];
      above[lane] += above[lane + width];
    }
  }
  return {{low[0], static_cast<double>(values.size()) - above[0]}, {high[0], above[0]}};
}

}  // namespace

float level_value(int level) {
  const int octave = level >> 3;
  return std::bit_cast<float>(static_cast<std::uint32_t>(127 + octave) << 23 |
                              steps[static_cast<std::size_t>(level & 7)]);
}

int nearest_level(double magnitude) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(magnitude);
  const int octave = static_cast<int>(bits >> 52) - 1023;
  if (octave == -1023) return no_level;
  const double significand =
      std::bit_cast<double>((bits & 0x000fffffffffffff) | std::bit_cast<std::uint64_t>(1.0));
  const auto step = std::count_if(bounds.begin(), bounds.end(), [&](double b) { return b <= significand; });
  return octave * level_steps + static_cast<int>(step);
}

TwoLevels two_levels(Span<const float> values) {
  constexpr float beyond_all = std::numeric_limits<float>::infinity();
  const Side all = split(values, beyond_all).low;
  TwoLevels result;
  result.low = result.high = nearest_level(all.mean());
  result.threshold = beyond_all;
  float threshold = static_cast<float>(all.mean());
  for (int step = 0; step <= 2; ++step) {
    const Sides sides = split(values, threshold);
    if (sides.low.count == 0 || sides.high.count == 0) break;
    const int low = nearest_level(sides.low.mean()), high = nearest_level(sides.high.mean());
    result = low < high ? TwoLevels{low, high, threshold} : TwoLevels{high, high, beyond_all};
    threshold = static_cast<float>((sides.low.mean() + sides.high.mean()) / 2);
  }
  return result;
}

}  // namespace neuroshard::outer::detail
