// The rules of a network's plans from its profile.
#pragma once

#include <string>

#include "core/config/network_profile.h"
#include "core/plan/architecture.h"

namespace neuroshard::app {

// precision: "bf16", else fp32.
plan::GrowthRules plan_rules(const config::ConsensusPart& consensus, const std::string& precision);
// Of one token's activations (docs/protocol/pipeline.md). wire: "int8", "bf16", else fp32.
double boundary_bytes(const std::string& wire, const compute::ModelShape& shape);

}  // namespace neuroshard::app
