// One holder per stage that the beacon chooses, so that nobody can arrange to hold a slot alone with friends.
#pragma once

#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/plan/detail/range_state.h"

namespace neuroshard::plan::detail {

// For each stretch between two cuts without a dealt holder, peers that fit it are ranked by SHA-256(beacon, first unit,
// id). The first one gets it that already holds it, or whose exchange with a holder costs at most the loss; if none of
// the first ranks does, the holder that ranks first. dealt: in and out, one entry per peer.
void deal(const Problem& problem, const std::vector<std::string>& ids, const Hash256& beacon, double loss,
          const std::vector<std::uint8_t>& movable, RangeState& state, std::vector<std::uint8_t>& dealt);

}  // namespace neuroshard::plan::detail
