// The learner of a simulated node (rounds/learner.h) on virtual time: steps take their time on the
// world's clock, and are computed when somebody needs their result. A LocalModel does the learning. With
// error feedback it keeps over a restart what the real one does (engine/round_memory.h).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/outer/error_feedback.h"
#include "core/rounds/learner.h"
#include "core/sim/world.h"

namespace neuroshard::sim {

// A model and its data on one node: P weights that are trained in place.
class LocalModel {
 public:
  virtual ~LocalModel() = default;
  // `steps` inner steps from `first` on of this round. Optimizer state is the model's own.
  virtual void train(std::uint64_t round, std::uint32_t first, std::uint32_t steps, Span<float> weights) = 0;
};

struct TrainerOptions {
  std::uint32_t inner_steps = 50;
  Duration step_time = std::chrono::milliseconds(200);
  std::uint64_t tokens_per_step = 1024;
  outer::CodecOptions codec;
  std::optional<float> error_feedback_beta;       // none: off
  std::uint32_t most_provisional_steps = 4 * 50;  // trained without a result; then it rests
};

class RoundTrainer final : public rounds::RoundLearner {
 public:
  // A Byzantine node's change of a delta before it is encoded. Null: honest. A delta that no codec takes is
  // sent as bytes that nobody can decode.
  using Distortion = std::function<void(std::uint64_t round, Span<float> delta, std::uint64_t* tokens)>;
  // world, executor and model outlive it.
  RoundTrainer(World& world, Executor& executor, LocalModel& model, TrainerOptions options,
               Distortion distortion);

  void start(Start from) override;
  rounds::TrainedWork progress() const override;
  void boundary(rounds::AfterBoundary after, std::function<void(Expected<Boundary>)> done) override;
  void go_on() override;
  std::uint32_t extra_steps() const override { return extra_; }
  void closed() override;
  void recall(ByteSourcePtr memory) override;
  // Share of the time since the first start in which no step ran.
  double waiting_share() const;
  std::uint64_t steps_trained() const { return steps_trained_ + (due_steps() - done_); }
  // The delta as it is now, for Byzantine nodes that know everything. Empty before the first start.
  std::vector<float> delta_now();

 private:
  struct Sent {
    std::uint64_t round = 0;
    Hash256 anchor{};  // SHA-256 of the weights that the round began with
    std::uint32_t steps = 0;
    ByteSourcePtr payload;  // null: nothing that may have to be put back
  };
  std::uint32_t due_steps() const;
  void catch_up();
  bool sent_before_restart(const Start& from) const;
  Expected<Boundary> with_feedback(const std::vector<float>& delta, rounds::TrainedWork work);

  World& world_;
  Executor& executor_;
  LocalModel& model_;
  const TrainerOptions options_;
  const Distortion distortion_;
  MemorySpool spool_;
  std::optional<outer::ErrorFeedback> feedback_;
  rounds::Anchor anchor_;
  std::vector<float> local_, at_boundary_;
  Sent sent_;
  bool recalled_ = false;  // sent_ is from before a restart
  std::uint64_t round_ = 0;
  bool resting_ = true;
  std::uint32_t limit_ = 0;  // of steps_
  MonotonicTime since_{};
  std::optional<MonotonicTime> first_;
  std::uint32_t done_ = 0;   // steps since `since_` that are in local_
  std::uint32_t steps_ = 0;  // of this start, carried ones included, without those not caught up with
  std::uint32_t boundary_steps_ = 0;
  std::uint32_t extra_ = 0;
  std::optional<std::uint32_t> lead_;  // steps from the boundary until the others had done theirs
  std::uint64_t steps_trained_ = 0;
};

}  // namespace neuroshard::sim
