// The numbers that the searches of core/plan share: one table per chain and list of peers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/plan/chain.h"

namespace neuroshard::plan::detail {

struct Problem {
  const Chain& chain;
  std::uint32_t count = 0;              // peers; all vectors have one entry each
  std::vector<double> speed{};          // FLOP/s
  std::vector<double> line{};           // bytes/s, the slower direction
  std::vector<std::uint64_t> memory{};  // bytes for ranges
  std::vector<std::uint32_t> owner{};   // 0 … owners − 1
  std::uint32_t owners = 0;
  std::uint32_t floor =
      1;  // distinct owners that each unit must have: least_replicas where there are so many
  std::uint32_t replicas = 1;  // that it should have, at least the floor

  // Owners that a unit with so many misses below the floor; without any owner it counts more than all others together.
  std::uint32_t missing(std::uint32_t owners) const {
    if (owners == 0) return floor * chain.size();
    return owners < floor ? floor - owners : 0;
  }
  // How much worse it is that a unit has so many owners and not one more, from the floor on.
  std::uint32_t thinness(std::uint32_t owners) const {
    return owners >= floor && owners < replicas ? replicas - owners : 0;
  }
  bool fits(std::uint32_t peer, UnitRange range) const { return chain.memory(range) <= memory[peer]; }
  // The longest range that fits and starts there; empty if the unit alone does not fit.
  UnitRange longest_from(std::uint32_t peer, std::uint32_t first) const {
    UnitRange range{first, first};
    while (range.end < chain.size() && fits(peer, {first, range.end + 1})) ++range.end;
    return range;
  }
};

// Fewer missing owners first, then more tokens/s; units with few owners divide them.
struct Score {
  std::uint32_t missing = 0;  // Σ over units of Problem::missing()
  double throughput = 0;
  double thin = 0;  // Σ over units and owners that they miss of thinness, by the number of units
  double value() const { return throughput / (1 + thin); }
  bool better_than(const Score& other) const {
    if (missing != other.missing) return missing < other.missing;
    return value() > other.value() * (1 + 1e-9);
  }
};

}  // namespace neuroshard::plan::detail
