// neuroshardd simulate with a scenario of plans.
#pragma once

#include "app/node/command.h"
#include "core/sim/plan_scenario.h"

namespace neuroshard::app {

// options without rules and bytes of a boundary; they are those of the profile. Sets the exit code if something that must hold
// did not.
Expected<void> simulate_plans(sim::PlanScenarioOptions options, CommandContext& context);

}  // namespace neuroshard::app
