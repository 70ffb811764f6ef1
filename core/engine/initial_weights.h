// The weights that every model of a network begins with: a pure function of the network, so that all nodes have the same
// bits, also of parts that they do not hold.
#pragma once

#include "core/base/spool.h"
#include "core/compute/stage_range.h"
#include "core/rounds/step.h"

namespace neuroshard::engine {

// For compute::initialise_slot().
Hash256 initial_seed(const Hash256& network, std::uint32_t architecture_version);

// A row's first state: the range's weights in slot order, and zero momentum. One slot at a time is in memory. Errors: those
// of the spool.
Expected<rounds::Anchor> initial_state(const compute::ModelShape& shape, const compute::StageRange& range,
                                       const Hash256& network, Spool& spool);

}  // namespace neuroshard::engine
