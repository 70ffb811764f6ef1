// The slots of a stage, and the weights of its parts as views into them.
#pragma once

#include <vector>

#include "core/compute/stage.h"
#include "core/model/block.h"
#include "core/model/head.h"
#include "core/model/router_balance.h"
#include "core/model/slot_state.h"

namespace neuroshard::model {

struct StageWeights {
  std::vector<SlotState> slots;  // in canonical order
  Weight embed;                  // [V,H]; undefined without the embedding
  std::vector<BlockWeights> blocks;
  HeadWeights head;  // undefined without it
};

// Slots that `old` has are taken from it, with the same buffers; the others are zeros. The blocks read their biases in
// `balance`. The spec has been validated, and old is of the same shape, precision and trainable. Throws OutOfMemory.
StageWeights make_stage_weights(const compute::StageSpec& spec, const Kernels& kernels,
                                const RouterBalance& balance, const std::vector<SlotState>& old);

}  // namespace neuroshard::model
