// A checkpoint as the seam shows it.
#pragma once

#include "core/checkpoint/catalogue.h"
#include "core/node/queries.h"

namespace neuroshard::engine::detail {

node::CheckpointEntry checkpoint_entry(const checkpoint::Entry& from);

}  // namespace neuroshard::engine::detail
