// Slots: the smallest things a node can host (docs/protocol/model.md), and where each parameter lies in a
// slot's flat fp32 buffer. Torch-free; shared by the compute module, checkpoints, exports and, later,
// placement and outer rounds. C++17.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/base/span.h"
#include "core/compute/model_shape.h"

namespace neuroshard::compute {

enum class SlotKind : std::uint8_t { Embed = 0, Layer = 1, Expert = 2, Head = 3 };

// Plain data, crosses the module's boundary. layer and expert are 0 where they mean nothing.
struct SlotId {
  SlotKind kind = SlotKind::Embed;
  std::uint32_t layer = 0;
  std::uint32_t expert = 0;
  friend bool operator==(SlotId a, SlotId b) {
    return a.kind == b.kind && a.layer == b.layer && a.expert == b.expert;
  }
  friend bool operator!=(SlotId a, SlotId b) { return !(a == b); }
};

// "embed", "layer 3", "expert 3.7", "head"; the one spelling used in files, JSON and messages.
std::string to_string(SlotId slot);
Expected<SlotId> parse_slot(const std::string& text);

// How a parameter starts and whether weight decay applies to it.
enum class Init : std::uint8_t { Normal, ResidualNormal, One };

struct ParameterInfo {
  std::string name;                 // as in the public Mixtral / LLaMA formats
  std::vector<std::uint64_t> dims;  // row-major, [out, in] for matrices
  std::uint64_t offset = 0;         // in floats, from the start of the slot's buffer
  std::uint64_t count = 0;
  Init init = Init::Normal;
  bool decay = true;  // false for norms and embeddings (docs/protocol/model.md)
};

// Every slot of the model in canonical order: embed; per layer: the layer, then its experts; head.
std::vector<SlotId> model_slots(const ModelShape& shape);
// The parameters of one slot in buffer order, without gaps.
std::vector<ParameterInfo> slot_parameters(const ModelShape& shape, SlotId slot);
std::uint64_t slot_parameter_count(const ModelShape& shape, SlotId slot);
std::uint64_t model_parameter_count(const ModelShape& shape);
// Parameters that one token passes through: all but the experts not chosen, without the embedding table.
std::uint64_t active_parameter_count(const ModelShape& shape);

// Initial weights: N(0, 0.02), residual outputs scaled by 1/sqrt(2·layers), norms 1. A pure function of
// (seed, slot): every node gets the same bits.  values: exactly slot_parameter_count floats.
void initialise_slot(const ModelShape& shape, SlotId slot, const Hash256& seed, Span<float> values);

}  // namespace neuroshard::compute
