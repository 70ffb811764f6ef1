// The branch of each checkpoint: a restore begins a new branch beside the old one, and both are shown.
// Pure.
#pragma once

#include <vector>

#include "core/node/queries.h"

namespace neuroshard::ui {

struct CheckpointPlace {
  int lane = 0;     // 0 = the branch of the newest one
  int parent = -1;  // index of the save before it; -1 = the first, deleted or unknown
};

// In the order of the entries (newest first). The newest one's line of parents is lane 0; every other line
// gets the lowest lane that is free over its steps. A deleted parent is bridged: the line continues
// without a joint.
std::vector<CheckpointPlace> place_on_branches(const std::vector<node::CheckpointEntry>& newest_first);

}  // namespace neuroshard::ui
