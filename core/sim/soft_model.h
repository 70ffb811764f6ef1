// The seeded softmax regression (outer/soft_learner.h) as the model of a simulated node.
#pragma once

#include <algorithm>
#include <memory>

#include "core/outer/soft_learner.h"
#include "core/sim/round_trainer.h"

namespace neuroshard::sim {

class SoftModel final : public LocalModel {
 public:
  SoftModel(std::shared_ptr<const outer::SoftTask> task, std::uint64_t worker,
            const outer::SoftLearnerOptions& options, std::uint64_t first_step)
      : learner_(std::move(task), worker, options, first_step) {}
  void train(std::uint64_t, std::uint32_t, std::uint32_t steps, Span<float> weights) override {
    learner_.start_from(weights);
    learner_.train(steps);
    std::copy(learner_.weights().begin(), learner_.weights().end(), weights.begin());
  }

 private:
  outer::SoftLearner learner_;
};

}  // namespace neuroshard::sim
