// fragments(P): the parameters in P parts of nearly the same length, each a row of the chain (Streaming DiLoCo,
// Douillard et al. 2025). Round r closes the row r mod P and has H/P steps. All parts train all the time, so a
// P-th of the bytes travels P times as often.
#pragma once

#include <cstdint>
#include <vector>

namespace neuroshard::rounds {

inline constexpr std::size_t max_fragments = 64;

struct Fragment {
  std::uint32_t row = 0;
  std::uint64_t first = 0;  // its first value
  std::uint64_t count = 0;
  std::uint32_t first_steps = 0;  // up to its first boundary; later boundaries lie H steps apart
};
// 1 ≤ parts ≤ max_fragments, values and inner_steps; cuts lie on multiples of the codec's chunk where there
// are enough values for that.
std::vector<Fragment> cut_fragments(std::uint64_t values, std::size_t parts, std::uint32_t inner_steps);
// Steps between the opening of round `round` and the end of the next round that closes the row.
std::uint32_t steps_of_row(std::uint32_t row, std::uint64_t round, std::size_t parts,
                           std::uint32_t inner_steps);

}  // namespace neuroshard::rounds
