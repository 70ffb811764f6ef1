// Work of several nodes in a round, for tests of who counts. Header only.
#pragma once

#include <cstddef>
#include <vector>

#include "tests/unit/chain/chain_fixture.h"

namespace neuroshard::chain::testing {

inline std::vector<Work> works_of(const std::vector<std::size_t>& nodes) {
  std::vector<Work> works;
  for (const std::size_t node : nodes) works.push_back({node});
  return works;
}

inline std::vector<std::size_t> joined(std::vector<std::size_t> nodes, const std::vector<std::size_t>& more) {
  nodes.insert(nodes.end(), more.begin(), more.end());
  return nodes;
}

}  // namespace neuroshard::chain::testing
