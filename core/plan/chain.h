// The slots of a shape as a chain of units, and the nodes that may hold them: the input of a plan.
//
// A unit is the embedding, one layer with all its experts, or the head; a node holds a contiguous range of units.
// Plain data, pure functions. Bytes, bytes/s, floating-point operations (FLOP) and FLOP/s.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/compute/slot.h"
#include "core/plan/architecture.h"

namespace neuroshard::plan {

// Units [first, end).
struct UnitRange {
  std::uint32_t first = 0;
  std::uint32_t end = 0;
  bool empty() const { return first >= end; }
  bool holds(std::uint32_t unit) const { return first <= unit && unit < end; }
  friend bool operator==(UnitRange a, UnitRange b) { return a.first == b.first && a.end == b.end; }
};

// FLOP of one token, forward and backward.
double embedding_work(const compute::ModelShape& shape);
double layer_work(const compute::ModelShape& shape);
double head_work(const compute::ModelShape& shape);

struct Unit {
  std::string name;                  // "embed", "layer 3", "head"
  double work = 0;                   // FLOP per token, forward and backward, > 0
  std::uint64_t transfer_bytes = 0;  // what a new holder fetches: weights and outer momentum
};

inline constexpr std::size_t most_units = most_layers + 2;

class Chain {
 public:
  // The chain of a shape that trains under the rules. boundary_bytes: of one token's activations on the wire, which
  // cross each boundary once forward and, as gradients, once backward.
  // InvalidArgument: an invalid shape, one of more than most_layers layers, or a boundary without bytes.
  static Expected<Chain> of_shape(const GrowthRules& rules, const compute::ModelShape& shape,
                                  double boundary_bytes);
  // Any units, 1 to most_units. memory(range) = fixed_bytes plus the bytes of each unit. For tests and other models.
  static Expected<Chain> of_units(std::vector<Unit> units, const std::vector<std::uint64_t>& unit_bytes,
                                  std::uint64_t fixed_bytes, double boundary_bytes);

  std::uint32_t size() const { return static_cast<std::uint32_t>(units_.size()); }
  const Unit& unit(std::uint32_t index) const { return units_[index]; }
  UnitRange whole() const { return {0, size()}; }
  double boundary_bytes() const { return boundary_bytes_; }
  // Of a non-empty range: bytes that its holder needs, all its overhead included.
  std::uint64_t memory(UnitRange range) const { return memory_[range.first * (size() + 1) + range.end]; }
  double work(UnitRange range) const { return work_before_[range.end] - work_before_[range.first]; }
  std::uint64_t transfer(UnitRange range) const {
    return transfer_before_[range.end] - transfer_before_[range.first];
  }
  // Ends of the range that are not ends of the model: a token's activations cross each of them.
  std::uint32_t crossings(UnitRange range) const {
    return (range.first > 0 ? 1u : 0u) + (range.end < size() ? 1u : 0u);
  }
  std::string describe(UnitRange range) const;  // "layer 2 to layer 5"

 private:
  Chain() = default;
  void sum_up();

  std::vector<Unit> units_;
  std::vector<std::uint64_t> memory_;  // [first][end]
  std::vector<double> work_before_;
  std::vector<std::uint64_t> transfer_before_;
  double boundary_bytes_ = 0;
};

inline constexpr std::size_t most_peers = 100'000;

struct PlanPeer {
  std::string id;            // unique, not empty
  std::string owner;         // wallet
  std::uint64_t memory = 0;  // bytes; only whole tiers count
  double speed = 0;          // FLOP/s, > 0
  double up = 0, down = 0;   // bytes/s, > 0
};

// Bytes of its whole tiers beyond the program's own.
std::uint64_t usable_bytes(const PlanPeer& peer, std::uint64_t baseline_bytes);

// The memory that counts, where nodes leave often: what a newcomer fills through its line in so many seconds, and the
// program's own. It fetches transfer_bytes_per_parameter of the 16 bytes that a parameter takes while it is trained.
std::uint64_t counted_memory(const PlanPeer& peer, double fill_seconds, std::uint64_t baseline_bytes);

// The speed that counts: the declared one, or the lower median of the counterparties' measurements if that is less.
double counted_speed(double declared, std::vector<double> measured);

}  // namespace neuroshard::plan
