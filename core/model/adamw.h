// AdamW (Loshchilov, Hutter 2019) with clipping per slot (docs/protocol/model.md), one pass over the flat
// buffers:
//   g = gradient / tokens;  norm = ‖g‖ over the slot;  limit = clip · sqrt(P_slot / P_model)
//   g ← g · min(1, limit / norm)
//   m ← β1·m + (1−β1)·g;   v ← β2·v + (1−β2)·g²
//   θ ← θ·(1 − lr·decay) − lr · (m / (1−β1^t)) / (sqrt(v / (1−β2^t)) + ε)
// and the gradient is zero afterwards.
#pragma once

#include <vector>

#include "core/compute/stage.h"
#include "core/model/kernels.h"
#include "core/model/slot_state.h"

namespace neuroshard::model {

// Steps the named slots. False, with nothing changed, if a gradient of any is not finite.
bool adamw_step(const Kernels& kernels, std::vector<SlotState>& slots,
                const std::vector<compute::SlotStep>& steps, std::uint64_t model_parameters,
                compute::StepMetrics& metrics);

}  // namespace neuroshard::model
