// The learner of a simulated node whose parameters are synchronised in fragments (rounds/fragments.h): one
// training on virtual time, seen by each fragment's node as a learner of its own. A step waits until no
// fragment is more than a round ahead of its anchor.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/rounds/fragments.h"
#include "core/sim/round_trainer.h"

namespace neuroshard::sim {

class FragmentTrainer {
 public:
  // world, executor and model outlive it. `initial`: the weights before the first anchors.
  FragmentTrainer(World& world, Executor& executor, LocalModel& model, TrainerOptions options,
                  const std::vector<rounds::Fragment>& fragments, std::vector<float> initial);
  ~FragmentTrainer();

  rounds::RoundLearner& learner(std::size_t fragment);
  std::uint64_t steps_trained() const { return trained_ + due(); }
  // Share of the time since all fragments had an anchor in which no step ran.
  double waiting_share() const;

 private:
  class Part;
  bool runs() const;          // all fragments have begun
  std::uint64_t end() const;  // the step that may not be begun yet
  std::uint64_t due() const;  // steps whose time has passed, not yet trained
  bool rests_long() const;    // as the real one gives up waiting (engine/round_trainer.h)
  void catch_up();
  // The end of training has moved, or is about to: the time before it is spent.
  template <class F>
  void change(F f);

  World& world_;
  Executor& executor_;
  LocalModel& model_;
  const TrainerOptions options_;
  std::vector<float> local_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::uint64_t trained_ = 0;
  MonotonicTime since_{};  // when the step after trained_ began, or could have
  std::optional<MonotonicTime> first_;
};

}  // namespace neuroshard::sim
