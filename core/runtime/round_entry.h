// A round of a fragment's chain of certificates as the rounds report shows it.
#pragma once

#include "core/node/rounds_report.h"
#include "core/rounds/participant.h"

namespace neuroshard::runtime {

// step: null when the node fetched the round's anchor.
node::RoundEntry round_entry(const rounds::RoundChain& chain, const rounds::StepResult* step,
                             const net::NodeId& self);

}  // namespace neuroshard::runtime
