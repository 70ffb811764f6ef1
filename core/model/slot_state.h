// The flat buffers of one slot, and its parameters as views into them (no copies: a step or a restore is seen
// at once).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/compute/slot.h"

namespace neuroshard::model {

struct SlotState {
  compute::SlotId id;
  std::vector<compute::ParameterInfo> layout;
  at::Tensor parameters;  // [count], zero at first
  at::Tensor gradient;  // [count], sums over tokens since the last step; undefined when not trainable, as the
                        // moments
  at::Tensor moment1;
  at::Tensor moment2;

  std::int64_t count() const { return parameters.numel(); }
};

// Throws OutOfMemory.
SlotState make_slot_state(const compute::ModelShape& shape, compute::SlotId id, bool trainable);

// A parameter and where its gradient is collected (undefined when not trainable).
struct Weight {
  at::Tensor value;
  at::Tensor gradient;
};
// Parameters [first, first + count) of the slot's layout as one matrix [rows, columns] or, for a single norm,
// a vector: neighbours of equal width are stored one after the other and may be used as one.
Weight weight_of(const SlotState& slot, std::size_t first, std::size_t count = 1);

}  // namespace neuroshard::model
