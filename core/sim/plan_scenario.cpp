#include "core/sim/plan_scenario.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/plan/placeable.h"

namespace neuroshard::sim {
namespace {

constexpr double fill_part = 0.1;  // of a mean session, to fetch a range in
constexpr double foreseen_hours[] = {0.25, 0.5, 1, 2};
constexpr double least_of_honest = 0.95;
constexpr double false_part = 0.2;

PlanWorldOptions world_of(const PlanScenarioOptions& options) {
  PlanWorldOptions world;
  world.homes.nodes = options.nodes;
  world.homes.hours = options.hours;
  world.homes.leaving_per_hour = options.leaving_per_hour;
  world.homes.returning = options.returning;
  world.homes.seed = options.seed;
  world.rules = options.rules;
  world.boundary_bytes = options.boundary_bytes;
  world.plan.replicas = options.replicas;
  world.plan.effort = options.effort;
  world.stop = options.stop;
  world.clock = options.clock;
  if (options.name == "plan-growth") {
    world.homes.nodes_at_start = std::max<std::size_t>(3, options.nodes / 20);
    world.grows = true;
  } else if (options.name == "plan-homes") {
    world.homes.speed_decades = 4;
    world.homes.line_least = 4;
    world.homes.peers_per_owner = 3;
  } else if (options.name == "plan-false") {
    world.homes.leaving_per_hour = 0;
  }
  if (world.homes.leaving_per_hour > 0) world.fill_seconds = fill_part * 3'600 / world.homes.leaving_per_hour;
  return world;
}

void check(const PlanWorldResult& run, PlanScenarioResult& result) {
  if (run.lost > 0) result.broken.push_back(fmt::format("slots were lost {} times", run.lost));
  // A change of the shape stops training until its plan is carried out.
  if (run.stalls > run.changes.size())
    result.broken.push_back(
        fmt::format("training stopped {} times, {:.0f} s in all", run.stalls, run.stalled_seconds));
}

Expected<void> foresee(const PlanWorldOptions& world, PlanScenarioResult& result) {
  for (const double hours : foreseen_hours) {
    PlanWorldOptions informed = world;
    informed.foreseen_hours = hours;
    NS_ASSIGN_OR_RETURN(const PlanWorldResult run, run_plan_world(informed));
    result.foreseen.push_back(
        {hours, run.tokens / result.run.tokens, run.bytes / std::max(1.0, result.run.bytes), run.lost});
  }
  return {};
}

// The model stays the one that the network trained before somebody declared too much.
Expected<PlanScenarioResult> run_false(PlanWorldOptions world) {
  PlanScenarioResult result;
  NS_ASSIGN_OR_RETURN(const PlanWorldResult honest, run_plan_world(world));
  world.shape = honest.shape;
  world.homes.inflated = false_part;
  NS_ASSIGN_OR_RETURN(result.run, run_plan_world(world));
  const std::size_t rounds = std::min(honest.throughput.size(), result.run.throughput.size());
  for (std::size_t round = rounds; round-- > 0;) {
    const double part = result.run.throughput[round] / honest.throughput[round];
    if (!result.of_honest) result.of_honest = part;
    if (!(part >= least_of_honest)) break;
    result.settled_round = round + 1;
  }
  if (!(result.of_honest.value_or(0) >= least_of_honest))
    result.broken.push_back(fmt::format("false declarations cost {:.1f} % of the throughput at the end",
                                        100 * (1 - result.of_honest.value_or(0))));
  if (result.run.lost > 0) result.broken.push_back(fmt::format("slots were lost {} times", result.run.lost));
  return result;
}

Expected<void> check(const PlanScenarioOptions& options) {
  const auto& all = plan_scenarios();
  const auto bad = [](std::string message) {
    return make_error(ErrorCode::InvalidArgument, std::move(message));
  };
  if (std::none_of(all.begin(), all.end(),
                   [&](const ScenarioInfo& info) { return info.name == options.name; }))
    return bad(fmt::format("there is no scenario '{}'; --list names them", options.name));
  if (options.nodes < least_plan_nodes || options.nodes > most_plan_nodes)
    return bad(fmt::format("{} nodes; plans are simulated for {} to {}", options.nodes, least_plan_nodes,
                           most_plan_nodes));
  if (!(options.hours > 0 && options.hours <= 1'000))
    return bad(fmt::format("{} hours; a simulation of plans lasts up to 1,000", options.hours));
  if (!(options.leaving_per_hour >= 0 && options.leaving_per_hour <= 5))
    return bad(fmt::format("a churn of {}; it is the part of the nodes that leaves in an hour, 0 to 5",
                           options.leaving_per_hour));
  if (!(options.returning >= 0 && options.returning <= 0.95))
    return bad(fmt::format("{} of the nodes return; it can be 0 to 0.95", options.returning));
  if (options.replicas < plan::least_replicas || options.replicas > 16)
    return bad(fmt::format("{} replicas; a slot has 2 to 16", options.replicas));
  return {};
}

}  // namespace

const std::vector<ScenarioInfo>& plan_scenarios() {
  static const std::vector<ScenarioInfo> all = {
      {"plan-churn", "computers leave for good and others come; each slot needs an owner at any time"},
      {"plan-growth", "a network grows twentyfold, and its model with it"},
      {"plan-homes", "very unequal computers and lines, three of each owner"},
      {"plan-false", "a fifth of the nodes declare ten times their memory and speed"},
  };
  return all;
}

Expected<PlanScenarioResult> run_plan_scenario(const PlanScenarioOptions& options) {
  NS_RETURN_IF_ERROR(check(options));
  const PlanWorldOptions world = world_of(options);
  if (options.name == "plan-false") return run_false(world);
  PlanScenarioResult result;
  NS_ASSIGN_OR_RETURN(result.run, run_plan_world(world));
  check(result.run, result);
  if (options.compare) NS_RETURN_IF_ERROR(foresee(world, result));
  return result;
}

}  // namespace neuroshard::sim
