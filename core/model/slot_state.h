// The flat buffers of one slot, and its parameters as views into them (no copies: a step or a restore is seen
// at once).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/compute/slot.h"
#include "core/model/packed_weight.h"

namespace neuroshard::model {

// A run of neighbouring parameters used as one matrix, and its bf16 copies.
struct PackedRange {
  std::size_t first = 0;  // of the slot's layout
  std::size_t count = 0;
  std::shared_ptr<PackedWeight> packed;
};

struct SlotState {
  compute::SlotId id;
  std::vector<compute::ParameterInfo> layout;
  at::Tensor parameters;  // [count], zero at first
  at::Tensor gradient;  // [count], sums over tokens since the last step; undefined when not trainable, as the
                        // moments
  at::Tensor moment1;
  at::Tensor moment2;
  std::vector<PackedRange> packed;  // in the order of the layout; empty in fp32

  std::int64_t count() const { return parameters.numel(); }
};

// Throws OutOfMemory.
SlotState make_slot_state(const compute::ModelShape& shape, compute::SlotId id, bool trainable);

// A parameter and where its gradient is collected (undefined when not trainable).
struct Weight {
  at::Tensor value;
  at::Tensor gradient;
  std::shared_ptr<PackedWeight> packed;  // null in fp32, and for what is not multiplied with
};
// Parameters [first, first + count) of the slot's layout as one matrix [rows, columns] or, for a single norm,
// a vector: neighbours of equal width are stored one after the other and may be used as one.
Weight weight_of(const SlotState& slot, std::size_t first, std::size_t count = 1);
// The same for a matrix that products read: with packed copies in a bf16 table, those that the slot has for it or new
// ones (zero until pack_slot). Throws OutOfMemory.
Weight product_weight(const Kernels& kernels, SlotState& slot, std::size_t first, std::size_t count = 1);
// Makes the packed copies anew after the parameters have been written.
void pack_slot(const Kernels& kernels, SlotState& slot);

}  // namespace neuroshard::model
