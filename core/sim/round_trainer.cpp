#include "core/sim/round_trainer.h"

#include <algorithm>

#include "core/base/check.h"

namespace neuroshard::sim {

RoundTrainer::RoundTrainer(World& world, Executor& executor, LocalModel& model, TrainerOptions options,
                           Distortion distortion)
    : world_(world),
      executor_(executor),
      model_(model),
      options_(options),
      distortion_(std::move(distortion)) {}

// Steps whose time has passed, up to the limit.
std::uint32_t RoundTrainer::due_steps() const {
  if (resting_) return done_;
  const auto passed = (world_.now() - since_) / options_.step_time;
  const std::uint32_t left = limit_ > steps_ ? limit_ - steps_ : 0;
  return done_ +
         static_cast<std::uint32_t>(std::min<std::int64_t>(std::max<std::int64_t>(passed - done_, 0), left));
}

void RoundTrainer::catch_up() {
  const std::uint32_t due = due_steps();
  if (due == done_) return;
  model_.train(round_, steps_, due - done_, local_);
  steps_ += due - done_;
  steps_trained_ += due - done_;
  done_ = due;
}

void RoundTrainer::start(Start from) {
  catch_up();
  if (!first_) first_ = world_.now();
  const std::size_t P = from.anchor->weights.size();
  std::vector<float> next = from.anchor->weights;
  std::uint32_t carried = 0;
  // The step that runs is not interrupted by an anchor that training does not wait for.
  Duration running{};
  const bool put_back = !from.counted && feedback_ && !sent_.empty();
  if (from.carry != rounds::Carry::Nothing && anchor_ && local_.size() == P) {
    if (!resting_ && steps_ < limit_) running = (world_.now() - since_) - done_ * options_.step_time;
    const bool everything = from.carry == rounds::Carry::Everything && !put_back;
    const std::vector<float>& base = everything ? anchor_->weights : at_boundary_;
    if (base.size() == P) {
      for (std::size_t i = 0; i < P; ++i) next[i] -= base[i] - local_[i];
      carried = everything ? steps_ : steps_ - boundary_steps_;
    }
  }
  if (put_back) NS_CHECK(feedback_->roll_back(sent_).ok());
  sent_.clear();
  anchor_ = std::move(from.anchor);
  local_ = std::move(next);
  at_boundary_.clear();
  round_ = from.round;
  // Carried work is weighed, but a round still has its own steps.
  steps_ = std::min(carried, options_.most_provisional_steps);
  boundary_steps_ = 0;
  resting_ = false;
  limit_ = options_.inner_steps;
  since_ = world_.now() - running;
  done_ = 0;
}

rounds::TrainedWork RoundTrainer::progress() const {
  const std::uint32_t steps = steps_ + (due_steps() - done_);
  return {steps, steps * options_.tokens_per_step};
}

void RoundTrainer::boundary(rounds::AfterBoundary after, std::function<void(Expected<Boundary>)> done) {
  catch_up();
  if (after == rounds::AfterBoundary::Rest) {
    resting_ = true;
  } else {
    if (steps_ >= limit_) {  // rested
      since_ = world_.now();
      done_ = 0;
    }
    limit_ = steps_ + options_.inner_steps;
  }
  at_boundary_ = local_;
  boundary_steps_ = steps_;
  std::vector<float> delta = delta_now();
  rounds::TrainedWork work{steps_, steps_ * options_.tokens_per_step};
  if (distortion_) distortion_(round_, delta, &work.tokens);
  if (options_.error_feedback_beta && !feedback_)
    feedback_.emplace(delta.size(), *options_.error_feedback_beta);
  Expected<Bytes> payload =
      feedback_ ? feedback_->encode(options_.codec, delta) : outer::encode(options_.codec, delta);
  if (!payload.ok() && distortion_) {
    std::fill(delta.begin(), delta.end(), 0.0f);
    payload = outer::encode(options_.codec, delta);
    if (payload.ok()) payload->back() ^= 1;
  }
  Expected<Boundary> result =
      payload.ok() ? Expected<Boundary>(Boundary{*payload, work}) : Expected<Boundary>(payload.error());
  if (payload.ok() && feedback_) sent_ = std::move(*payload);
  static_cast<void>(executor_.post([done = std::move(done), result = std::move(result)] { done(result); }));
}

std::vector<float> RoundTrainer::delta_now() {
  catch_up();
  std::vector<float> delta(local_.size());
  for (std::size_t i = 0; i < delta.size(); ++i) delta[i] = anchor_->weights[i] - local_[i];
  return delta;
}

double RoundTrainer::waiting_share() const {
  const double all = first_ ? to_seconds(world_.now() - *first_) : 0;
  return all <= 0 ? 0 : 1 - static_cast<double>(steps_trained()) * to_seconds(options_.step_time) / all;
}

void RoundTrainer::go_on() {
  catch_up();
  resting_ = false;
  limit_ = options_.most_provisional_steps;
  since_ = world_.now();
  done_ = 0;
}

}  // namespace neuroshard::sim
