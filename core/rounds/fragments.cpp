#include "core/rounds/fragments.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/outer/codec.h"

namespace neuroshard::rounds {

std::vector<Fragment> cut_fragments(std::uint64_t values, std::size_t parts, std::uint32_t inner_steps) {
  NS_CHECK(parts >= 1 && parts <= max_fragments && parts <= values && parts <= inner_steps);
  const std::uint64_t unit = values / parts >= 2 * outer::codec_chunk ? outer::codec_chunk : 1;
  std::vector<Fragment> fragments(parts);
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < parts; ++i) {
    const std::uint64_t end = i + 1 == parts ? values : values * (i + 1) / parts / unit * unit;
    fragments[i].row = static_cast<std::uint32_t>(i);
    fragments[i].first = at;
    fragments[i].count = end - at;
    fragments[i].first_steps = steps_of_row(fragments[i].row, 1, parts, inner_steps);
    at = end;
  }
  return fragments;
}

std::uint32_t steps_of_row(std::uint32_t row, std::uint64_t round, std::size_t parts,
                           std::uint32_t inner_steps) {
  const std::uint64_t rounds = (row + parts - round % parts) % parts + 1;
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(1, inner_steps * rounds / parts));
}

}  // namespace neuroshard::rounds
