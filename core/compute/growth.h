// A model that continues a smaller one and computes the same: deeper, wider, or both (docs/protocol/model.md).
//
// New dimensions of the residual stream carry zeros at first: nothing writes into them. Each norm's gain is scaled by
// sqrt(H / H'), because its mean square is over more of them. New heads, new units of an expert and new layers have outputs of
// zero. All else that is new starts as initialise_slot does, so gradients reach it at once and differ. (Net2Net,
// Chen et al. 2016, is the idea; zero outputs as in "Staged training", Shen et al. 2022.)
//
// Pure functions without libm beyond sqrt: every node computes the same bits.
#pragma once

#include <optional>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/base/span.h"
#include "core/compute/slot.h"

namespace neuroshard::compute {

// InvalidArgument names the dimension that is in the way: only layers, hidden, heads, ffn and sequence may grow. Each head keeps its
// key/value head, and everything else stays. Both shapes are valid. Shapes that are equal are no error.
Expected<void> check_growth(const ModelShape& smaller, const ModelShape& larger);

// The slot of the smaller model that this slot of the larger one continues; nothing for slots of new layers. Layer l of L
// becomes layer floor(l · M / L) of M.
std::optional<SlotId> grown_from(const ModelShape& smaller, const ModelShape& larger, SlotId slot);

// old: the slot that grown_from() names, empty if there is none. values: of the slot of the larger model. seed: as of
// initialise_slot. Shapes: check_growth() allows them.
void grow_slot(const ModelShape& smaller, const ModelShape& larger, SlotId slot, Span<const float> old,
               const Hash256& seed, Span<float> values);

}  // namespace neuroshard::compute
