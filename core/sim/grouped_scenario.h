// Scenarios with rounds of two levels: run_scenario() (scenario.h) comes here beyond one group.
#pragma once

#include "core/sim/scenario.h"

namespace neuroshard::sim {

inline constexpr std::size_t shared_from =
    129;  // nodes; from there on what all derive alike is computed once

// Options were checked.  InvalidArgument: a scenario that small groups alone have.
Expected<ScenarioResult> run_grouped_scenario(const ScenarioOptions& options);

}  // namespace neuroshard::sim
