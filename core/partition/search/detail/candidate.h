// A partition of some graph's nodes, not yet checked against the incumbent.
#pragma once

#include <cstdint>
#include <vector>

namespace neuroshard::partition::detail {

struct Candidate {
  std::vector<std::uint32_t> block_of;         // per node, blocks in pipeline order; empty: none
  std::vector<std::uint32_t> device_of_block;  // positions in the list of devices
  std::vector<std::uint32_t> order;            // of the nodes, where memory makes it matter; else empty
};

}  // namespace neuroshard::partition::detail
