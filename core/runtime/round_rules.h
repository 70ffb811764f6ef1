// The parameters of outer rounds from a network's profile. Pure functions.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/config/model_part.h"
#include "core/config/network_profile.h"
#include "core/engine/round_trainer.h"
#include "core/rounds/round_cost.h"
#include "core/rounds/step.h"
#include "core/runtime/runtime_services.h"

namespace neuroshard::runtime {

// The rows of a network whose members hold parts of the model; empty: they hold all of it.
std::vector<rounds::Fragment> part_rows(const config::ConsensusPart& consensus);
std::shared_ptr<engine::RoundTrainer> make_round_trainer(const config::ConsensusPart& consensus,
                                                         std::shared_ptr<Spool> spool,
                                                         const RuntimeServices& services);
// Of a network with rounds, for this node alone.
rounds::RoundShape round_shape(const config::ConsensusPart& consensus);
// A round of so many members, at most. written: to the disk, with the checkpoint that follows.
struct RoundTraffic {
  std::uint64_t written = 0, sent = 0, received = 0;
};
RoundTraffic round_traffic(const config::ConsensusPart& consensus, std::size_t members);
rounds::OuterRules outer_rules(const config::ConsensusPart& consensus, const Hash256& tokenizer);

}  // namespace neuroshard::runtime
