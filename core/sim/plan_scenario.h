// Scenarios of `neuroshardd simulate` in which the network decides who holds which slots (plan_world.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/sim/plan_world.h"
#include "core/sim/scenario.h"

namespace neuroshard::sim {

// In the order of --list.
const std::vector<ScenarioInfo>& plan_scenarios();

inline constexpr std::size_t least_plan_nodes = 3, most_plan_nodes = 5'000;

struct PlanScenarioOptions {
  std::string name = "plan-churn";
  std::size_t nodes = 60;
  double hours = 6;
  double leaving_per_hour = 0.2;  // where nodes leave
  double returning = 0;           // part of them
  std::uint32_t replicas = 5;     // owners that each slot should have
  std::uint64_t seed = 1;
  double effort = 1;     // of the planner
  bool compare = false;  // with planners that know when nodes leave; not plan-false
  plan::GrowthRules rules;
  std::function<double(const compute::ModelShape&)> boundary_bytes;
  const Clock* clock = nullptr;  // measures the planner
  CancelToken stop = {};
};

// A planner that knows when nodes leave, and gives nothing to those that leave within so many hours.
struct ForeseenRun {
  double hours = 0;
  double tokens = 0, bytes = 0;  // by those of the planner that does not know
  std::uint64_t lost = 0;
};

struct PlanScenarioResult {
  PlanWorldResult run;
  std::vector<ForeseenRun> foreseen;
  // plan-false: throughput at the end by that of a run in which all nodes declare what they have, and the round from which on
  // it is at least 0.95.
  std::optional<double> of_honest;
  std::optional<std::size_t> settled_round;
  std::vector<std::string> broken;  // what must hold and did not, in words
};

// InvalidArgument: no such scenario, or options out of range. Other errors: as run_plan_world.
Expected<PlanScenarioResult> run_plan_scenario(const PlanScenarioOptions& options);

}  // namespace neuroshard::sim
