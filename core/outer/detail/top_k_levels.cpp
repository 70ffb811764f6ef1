#include "core/outer/detail/top_k_levels.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

namespace neuroshard::outer::detail {
namespace {

// Bits of the significands of 2^(i/8), and the bounds between neighbours, 2^((i + 1/2)/8).
constexpr std::array<std::uint32_t, 8> steps = {0x000000, 0x0b95c2, 0x1837f0, 0x25fed7,
                                                0x3504f3, 0x45672a, 0x5744fd, 0x6ac0c7};
constexpr std::array<double, 8> bounds = {1.0442737824274138, 1.1387886347566916, 1.2418578120734840,
                                          1.3542555469368927, 1.4768261459394993, 1.6104903319492543,
                                          1.7562521603732995, 1.9152065613971474};

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

TwoLevels two_levels(const CodecKernels& kernels, Span<const float> values) {
  constexpr float beyond_all = std::numeric_limits<float>::infinity();
  const double count = static_cast<double>(values.size());
  MagnitudeSides sides;
  kernels.split(values.data(), values.size(), beyond_all, &sides);
  const double mean = sides.low_sum / count;
  TwoLevels result;
  result.low = result.high = nearest_level(mean);
  result.threshold = beyond_all;
  float threshold = static_cast<float>(mean);
  for (int step = 0; step <= 2; ++step) {
    kernels.split(values.data(), values.size(), threshold, &sides);
    const double high_count = sides.high_count;
    if (high_count == 0 || high_count == count) break;
    const double low_mean = sides.low_sum / (count - high_count), high_mean = sides.high_sum / high_count;
    const int low = nearest_level(low_mean), high = nearest_level(high_mean);
    result = low < high ? TwoLevels{low, high, threshold} : TwoLevels{high, high, beyond_all};
    threshold = static_cast<float>((low_mean + high_mean) / 2);
  }
  return result;
}

}  // namespace neuroshard::outer::detail
