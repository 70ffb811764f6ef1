// The shape of the model that given peers can hold, each with its own memory (docs/protocol/placement.md).
#pragma once

#include <functional>
#include <optional>

#include "core/plan/architecture.h"
#include "core/plan/planner.h"

namespace neuroshard::plan {

// The chain of a shape; never an error for shapes of the ladder.
using MakeChain = std::function<Expected<Chain>(const compute::ModelShape&)>;

// How many copies of the chain's inner units the peers can hold if each takes its longest range: less than their memory
// divided by the chain's, since ranges are whole units and some peers fit none.
double holdable_copies(const Chain& chain, const std::vector<PlanPeer>& peers, const PlanOptions& options);

// The largest shape of the ladder up to choose_architecture's of which the peers can hold options.replicas copies in
// the usable part of what they hold. So ranges, whole tiers and nodes too small for a layer do not make a plan impossible.
// The minimum if none. rules: valid.
struct NextShape {
  Rung rung;
  double copies = 0;        // of it, that the peers can hold
  double useful_share = 0;  // part of the peers that fit a layer of it
};
struct PlaceableShape {
  compute::ModelShape shape;
  double copies = 0;              // of it, that the peers can hold
  double needed_copies = 0;       // of any shape
  std::optional<NextShape> next;  // the next rung of the ladder, with what keeps the peers from it
};
PlaceableShape placeable_shape(const GrowthRules& rules, const std::vector<PlanPeer>& peers,
                               const PlanOptions& options, const MakeChain& make_chain);

// Whether a network that trains `present` changes its shape, as decide_change, but by the copies that the peers can hold.
// Upgrade: to the largest shape of which they hold options.replicas copies with the surplus. Downgrade: they can't hold
// least_replicas copies of the present one in the usable part; to placeable_shape.
Change decide_placeable_change(const GrowthRules& rules, const compute::ModelShape& present,
                               const std::vector<PlanPeer>& peers, const PlanOptions& options,
                               const MakeChain& make_chain);

// The units that a holder of `range` has after a change of the depth, without fetching. Growing from L to M layers puts
// layer l at floor(l · M / L); the new layers after it are computed by its holders. Shrinking from M to L keeps, as layer
// l, layer floor(l · M / L).
UnitRange carried_range(UnitRange range, std::uint32_t layers_before, std::uint32_t layers_after);

}  // namespace neuroshard::plan
