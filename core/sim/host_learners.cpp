#include "core/sim/host_learners.h"

#include "core/base/check.h"

namespace neuroshard::sim {

HostLearners::HostLearners(World& world, Executor& executor, LocalModel& model, const TrainerOptions& options,
                           RoundTrainer::Distortion distortion,
                           const std::vector<rounds::Fragment>& fragments, const std::vector<float>& initial)
    : rows_(fragments.size()) {
  NS_CHECK(rows_ == 1 || !distortion);
  if (rows_ == 1)
    whole_ = std::make_unique<RoundTrainer>(world, executor, model, options, std::move(distortion));
  else
    parts_ = std::make_unique<FragmentTrainer>(world, executor, model, options, fragments, initial);
}

std::vector<rounds::RoundLearner*> HostLearners::by_row() {
  std::vector<rounds::RoundLearner*> learners;
  for (std::size_t row = 0; row < rows_; ++row)
    learners.push_back(parts_ ? &parts_->learner(row) : whole_.get());
  return learners;
}

double HostLearners::waiting_share() const {
  return parts_ ? parts_->waiting_share() : whole_->waiting_share();
}

std::uint64_t HostLearners::steps_trained() const {
  return parts_ ? parts_->steps_trained() : whole_->steps_trained();
}

RoundTrainer& HostLearners::whole() {
  NS_CHECK(whole_ != nullptr);
  return *whole_;
}

}  // namespace neuroshard::sim
