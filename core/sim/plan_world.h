// A network whose members hold what a plan gives them (core/plan), for a while of virtual time: homes come and go, nodes
// fetch their slots over their lines, and each round has a new plan. The planner is the one of real nodes. Training itself
// is not simulated: tokens are what the schedule of core/plan serves with the slots that the nodes have.
//
// A node with a new plan fetches the missing units, and goes on with its old ones until it has all of them.
// It then waits for as long as a unit would be left with fewer than two owners.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/plan/planner.h"
#include "core/sim/homes.h"

namespace neuroshard::sim {

struct PlanWorldOptions {
  HomesOptions homes;
  plan::GrowthRules rules;  // valid
  plan::PlanOptions plan;
  std::function<double(const compute::ModelShape&)> boundary_bytes;  // of one token's activations
  double round_seconds = 600;
  std::optional<compute::ModelShape> shape;  // at the start; none: the one that the nodes allow
  bool grows = false;                        // else the shape of the start stays
  double transfer_share = 0.5;               // of the lines
  double moved_copies = 1;                   // copies of the model that a plan may let present holders fetch
  double fill_seconds = std::numeric_limits<double>::infinity();  // plan::counted_memory
  // For comparison: the planner knows when nodes leave, and gives nothing to those that leave within these hours.
  double foreseen_hours = 0;
  const Clock* clock = nullptr;  // measures the planner; none: it is not measured
  CancelToken stop = {};
};

struct ShapeChange {
  double hour = 0;
  compute::ModelShape before, after;
};

struct PlanWorldResult {
  compute::ModelShape shape;  // at the end
  std::uint32_t units = 0;
  std::uint32_t rounds = 0;
  std::size_t homes = 0, most_present = 0, present_at_end = 0;
  std::uint64_t departures = 0, arrivals = 0;
  double tokens = 0;               // that all nodes trained
  double bound_tokens = 0;         // that no plan of the nodes that were there exceeds
  std::vector<double> throughput;  // tokens/s at the end of each round
  std::uint64_t lost = 0;          // times that nobody had a unit any more
  std::uint64_t stalls = 0;        // times that training stood
  double stalled_seconds = 0;
  double bytes = 0;                          // that nodes fetched
  double joined_bytes = 0, moved_bytes = 0;  // of newcomers' first ranges; of later ones
  double unused_bytes = 0;                   // of nodes that left before they served
  std::uint32_t least_owners = 0;            // of a unit, after the first round
  double short_share = 0;                    // of the units and rounds: fewer owners than plan.replicas
  std::uint64_t moves = 0;                   // that plans asked of present holders
  std::uint64_t refused = 0;                 // rounds without a new plan, because none holds every unit
  double slowest_plan_seconds = 0;           // of this computer, not of virtual time
  std::vector<ShapeChange> changes;
};

// Same options, same result on every machine, but slowest_plan_seconds. Options: in the
// ranges that plan_scenario.h checks. Exhausted: the nodes at the start can't hold the smallest model; Cancelled.
Expected<PlanWorldResult> run_plan_world(const PlanWorldOptions& options);

}  // namespace neuroshard::sim
