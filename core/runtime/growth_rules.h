// The rules of a network's model shapes, from its profile.
#pragma once

#include "core/config/network_profile.h"
#include "core/plan/architecture.h"

namespace neuroshard::runtime {

plan::GrowthRules growth_rules(const config::ConsensusPart& consensus,
                               compute::Precision precision = compute::Precision::Fp32);

}  // namespace neuroshard::runtime
