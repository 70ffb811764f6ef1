// The learners of one simulated node by row: one for the whole model, one for each fragment of it, or one for each of
// the rows that the node holds.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/chain/row_set.h"
#include "core/sim/fragment_trainer.h"
#include "core/sim/round_trainer.h"

namespace neuroshard::sim {

class HostLearners {
 public:
  // world, executor and model outlive it. distortion: only where there is one fragment. held: nothing, all rows.
  HostLearners(World& world, Executor& executor, LocalModel& model, const TrainerOptions& options,
               RoundTrainer::Distortion distortion, const std::vector<rounds::Fragment>& fragments,
               const std::vector<float>& initial, const std::optional<chain::RowSet>& held = std::nullopt);

  std::vector<rounds::RoundLearner*> by_row();
  // Share of the time since training began in which no step ran.
  double waiting_share() const;
  std::uint64_t steps_trained() const;
  // There is one fragment.
  RoundTrainer& whole();

 private:
  const std::size_t rows_;
  std::unique_ptr<RoundTrainer> whole_;
  std::unique_ptr<FragmentTrainer> parts_;
  std::map<std::uint32_t, std::unique_ptr<RoundTrainer>> held_;  // by row
};

}  // namespace neuroshard::sim
