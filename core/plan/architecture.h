// The shape of the model that a network's contributed memory allows (docs/protocol/placement.md).
//
// The rules give a curve through (layers, hidden): with M in GB (10^9 bytes), hidden = 256·sqrt(M/10) and
// layers = 8·log2(M/10 + 1). Its lattice points form one chain, the ladder: from a shape to the next either two layers
// or one unit of width are added, whichever the curve reaches first. The network's shape is the largest of the ladder
// that the curve allows and of which two copies fit into 80 % of M. So shapes only grow in both directions with M, and
// growth never has to remove a layer or a column. Shrinking by two layers and one unit of width in turn does not have
// this property: from two neighbouring starts it ends at shapes of which neither contains the other.
//
// Pure functions in integer and exact double arithmetic, without libm: every node computes the same shape.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/expected.h"
#include "core/compute/memory_estimate.h"
#include "core/compute/model_shape.h"

namespace neuroshard::plan {

inline constexpr std::uint64_t memory_tier_bytes = 500'000'000;  // of a node's memory, whole tiers count
inline constexpr std::uint64_t program_bytes =
    256u << 20;  // resident, with the compute module and without a model
inline constexpr std::uint32_t least_replicas = 2;
inline constexpr std::uint32_t usable_percent = 80;  // of the contributed memory
inline constexpr std::uint32_t most_layers = 64;
inline constexpr std::uint32_t most_hidden = 8192;
// An upgrade needs so many percent of the present parameters, and so much more memory than its copies take.
inline constexpr std::uint32_t upgrade_parameters_percent = 130;
inline constexpr std::uint32_t upgrade_surplus_percent = 50;

// From the profile's consensus part.
struct GrowthRules {
  compute::ModelShape minimum;  // layers, hidden and the constants of all shapes; it is valid
  bool grows = true;            // false: the minimum is the only shape
  std::uint32_t heads_per_kv_head = 4;
  std::uint32_t ffn_percent = 400;  // of hidden
  std::uint64_t batch_tokens =
      0;  // of a worker's inner step: its activations are resident; a multiple of sequence
  compute::Precision precision = compute::Precision::Fp32;
  std::uint32_t threads = 1;  // of the attention's scratch
};

// InvalidArgument: the minimum is no shape of a ladder (invalid, above the largest, hidden not a multiple of
// head_dim · heads_per_kv_head), or batch_tokens is no multiple of its sequence.
Expected<void> validate(const GrowthRules& rules);

// Bytes of one node that trains the whole model: buffers, workspace and a step's activations.
std::uint64_t training_bytes(const GrowthRules& rules, const compute::ModelShape& shape);
// Bytes of one node that trains the slots of a stage. `spec.shape` may be any; experts count as spec.expert_held says.
std::uint64_t training_bytes(const GrowthRules& rules, const compute::StageSpec& spec);

struct Rung {
  compute::ModelShape shape;
  std::uint64_t copy_bytes = 0;  // training_bytes
  std::uint64_t curve_bytes =
      0;  // the curve allows the shape from so much contributed memory on, to one tier
  std::uint64_t required_bytes = 0;  // contributed memory from which it is chosen
};
// From the minimum to the largest shape; each is at least as deep and as wide as the one before. rules: valid.
std::vector<Rung> ladder(const GrowthRules& rules);

// Whole tiers of one node.
std::uint64_t counted_bytes(std::uint64_t memory_bytes);
// Contributed memory needed so that so many copies fit into the usable part.
std::uint64_t required_bytes(std::uint64_t copy_bytes, std::uint32_t replicas);

enum class NetworkState : std::uint8_t {
  TooSmall,  // not even one copy of the minimum fits
  Forming,   // one copy of the minimum, unreplicated
  Ready,     // at least two copies
};
enum class Tier : std::uint8_t { Nano, Micro, Small, Medium, Large, XL };
Tier tier_of(std::uint64_t contributed_bytes);
std::string_view to_string(Tier tier);
std::string_view to_string(NetworkState state);
// Where the next tier begins; nothing for the last.
std::optional<std::uint64_t> next_tier_bytes(Tier tier);

struct Architecture {
  NetworkState state = NetworkState::TooSmall;
  Tier tier = Tier::Nano;
  compute::ModelShape shape;            // the minimum when too small
  std::uint64_t copy_bytes = 0;         // of the shape
  std::uint64_t contributed_bytes = 0;  // whole tiers of all nodes; UINT64_MAX if it is more
  std::uint64_t missing_bytes = 0;      // contributed memory up to the next state; 0 when ready
  std::optional<Rung> next;             // the next larger shape
};
// contributed: each node's memory, in bytes. rules: valid.
Architecture choose_architecture(const GrowthRules& rules, const std::vector<std::uint64_t>& contributed);

enum class ChangeKind : std::uint8_t { Keep, Upgrade, Downgrade };
struct Change {
  ChangeKind kind = ChangeKind::Keep;
  compute::ModelShape shape;  // the one to train afterwards
};
// Whether a network that trains `present` changes its shape. Upgrade: to the largest shape that is deeper or wider, of
// which two copies leave the surplus free, if it has enough parameters more. Downgrade: two copies of the present shape
// no longer fit into the usable part and a smaller shape exists; to the chosen one. Between both nothing changes.
Change decide_change(const GrowthRules& rules, const compute::ModelShape& present,
                     std::uint64_t contributed_bytes);

}  // namespace neuroshard::plan
