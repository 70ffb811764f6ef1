// A model that continues a smaller one and computes the same: deeper, wider, or both; and the way back
// (docs/protocol/model.md).
//
// New dimensions of the residual stream carry zeros at first: nothing writes into them. Each norm's gain is scaled by
// sqrt(H / H'), because its mean square is over more of them. New heads, new units of an expert and new layers have outputs of
// zero. All else that is new starts as initialise_slot does, so gradients reach it at once and differ. (Net2Net,
// Chen et al. 2016, is the idea; zero outputs as in "Staged training", Shen et al. 2022.)
//
// The way back keeps what the smaller model has of each layer that continues one of its own, and drops the rest. It undoes
// growth; of a larger model that has learned since, it computes something else than that did.
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

// The same for the momentum of these weights: the linear part of grow_slot(). All that is new has none; a gain's is scaled like
// the gain.
void grow_momentum(const ModelShape& smaller, const ModelShape& larger, SlotId slot, Span<const float> old,
                   Span<float> values);

// The slot of the larger model that continues this one of the smaller: the inverse of grown_from(). Layer l takes layer
// floor(l · M / L).
SlotId shrunk_from(const ModelShape& smaller, const ModelShape& larger, SlotId slot);

// Of weights, and of their momentum: the map is linear. old: the slot that shrunk_from() names. values: of the slot of the
// smaller model. Undoes grow_slot() and grow_momentum() bit for bit; a gain that is a normal number differs by
// one unit in the last place at most.
void shrink_slot(const ModelShape& smaller, const ModelShape& larger, SlotId slot, Span<const float> old,
                 Span<float> values);

}  // namespace neuroshard::compute
