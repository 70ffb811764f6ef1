#include "core/sim/host_learners.h"

#include "core/base/check.h"

namespace neuroshard::sim {

HostLearners::HostLearners(World& world, Executor& executor, LocalModel& model, const TrainerOptions& options,
                           RoundTrainer::Distortion distortion,
                           const std::vector<rounds::Fragment>& fragments, const std::vector<float>& initial,
                           const std::optional<chain::RowSet>& held)
    : rows_(fragments.size()) {
  NS_CHECK(rows_ == 1 || !distortion);
  if (held) {
    for (const rounds::Fragment& row : fragments)
      if (held->has(row.row))
        held_[row.row] = std::make_unique<RoundTrainer>(world, executor, model, options, nullptr);
  } else if (rows_ == 1) {
    whole_ = std::make_unique<RoundTrainer>(world, executor, model, options, std::move(distortion));
  } else {
    parts_ = std::make_unique<FragmentTrainer>(world, executor, model, options, fragments, initial);
  }
}

std::vector<rounds::RoundLearner*> HostLearners::by_row() {
  std::vector<rounds::RoundLearner*> learners;
  for (std::size_t row = 0; row < rows_; ++row) {
    if (parts_ || whole_) {
      learners.push_back(parts_ ? &parts_->learner(row) : whole_.get());
      continue;
    }
    const auto own = held_.find(static_cast<std::uint32_t>(row));
    learners.push_back(own == held_.end() ? nullptr : own->second.get());
  }
  return learners;
}

double HostLearners::waiting_share() const {
  if (parts_) return parts_->waiting_share();
  return whole_ ? whole_->waiting_share() : held_.begin()->second->waiting_share();
}

std::uint64_t HostLearners::steps_trained() const {
  if (parts_) return parts_->steps_trained();
  return whole_ ? whole_->steps_trained() : held_.begin()->second->steps_trained();
}

RoundTrainer& HostLearners::whole() {
  NS_CHECK(whole_ != nullptr);
  return *whole_;
}

}  // namespace neuroshard::sim
