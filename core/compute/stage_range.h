// A contiguous part of a model: what one stage of a pipeline holds. And the division of a model into parts that a
// network fixes (docs/protocol/networks.md#parts).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/compute/model_shape.h"
#include "core/compute/slot.h"

namespace neuroshard::compute {

struct StageRange {
  std::uint32_t first_layer = 0;
  std::uint32_t layer_count = 0;
  bool embed = false;
  bool head = false;
  friend bool operator==(const StageRange&, const StageRange&) = default;
};
std::string to_text(const StageRange& range);  // "embedding, layers 0 to 3", for a person
StageRange whole_range(const ModelShape& shape);

// The range's slots, in canonical order (slot.h).
std::vector<SlotId> slots_of(const ModelShape& shape, const StageRange& range);
bool holds(const StageRange& range, SlotId slot);
// Its values among those of the whole model, in the same order.
struct ValueRange {
  std::uint64_t first = 0, count = 0;
};
ValueRange values_of(const ModelShape& shape, const StageRange& range);

// The model in `parts` ranges, in order, each with a layer or more: the cut whose largest range has the fewest
// parameters; of several such cuts, the one whose earlier ranges are shorter. 1 ≤ parts ≤ shape.layers.
std::vector<StageRange> cut_model(const ModelShape& shape, std::size_t parts);

}  // namespace neuroshard::compute
