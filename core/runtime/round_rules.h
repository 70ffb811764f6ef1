// The parameters of outer rounds from a network's profile. Pure functions.
#pragma once

#include <memory>

#include "core/config/network_profile.h"
#include "core/engine/round_trainer.h"
#include "core/rounds/step.h"
#include "core/runtime/runtime_services.h"

namespace neuroshard::runtime {

std::shared_ptr<engine::RoundTrainer> make_round_trainer(const config::ConsensusPart& consensus,
                                                         std::shared_ptr<Spool> spool,
                                                         const RuntimeServices& services);
rounds::OuterRules outer_rules(const config::ConsensusPart& consensus, const Hash256& tokenizer);

}  // namespace neuroshard::runtime
