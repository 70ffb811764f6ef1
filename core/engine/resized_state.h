// The outer state of a network whose model changes its size: a pure function of the state before, so that all nodes go on from
// the same bits (core/compute/growth.h).
#pragma once

#include "core/base/spool.h"
#include "core/compute/stage_range.h"
#include "core/rounds/step.h"

namespace neuroshard::engine {

// The state of to_range in the model `to`, from the state of from_range in the model `from`. It grows where `to` is the larger
// shape, and else shrinks. Two slots at a time are in memory, one of each shape. Ranges: of their shapes.
//
// seed: of the weights that are new (initial_seed()).
// InvalidArgument: neither shape continues the other; the state is not of from_range; from_range lacks a slot that to_range
// continues. Unsupported: the state has a balancing bias. Other errors: those of reading the state and of the spool.
Expected<rounds::Anchor> resized_state(const compute::ModelShape& from, const compute::StageRange& from_range,
                                       const compute::ModelShape& to, const compute::StageRange& to_range,
                                       const Hash256& seed, const rounds::OuterState& state, Spool& spool);

}  // namespace neuroshard::engine
