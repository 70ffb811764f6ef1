#include "core/sim/round_trainer.h"

#include <algorithm>
#include <cstring>

#include "core/base/check.h"
#include "core/crypto/hash.h"

namespace neuroshard::sim {
namespace {

Hash256 hash_of(const rounds::Anchor& anchor) {
  return crypto::sha256(as_bytes(Span<const float>(anchor->weights)));
}

}  // namespace

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
  const bool settled = !sent_before_restart(from);
  const bool put_back = settled && !from.counted && feedback_ && !sent_.payload.empty();
  if (from.carry != rounds::Carry::Nothing && anchor_ && local_.size() == P) {
    if (!resting_ && steps_ < limit_) running = (world_.now() - since_) - done_ * options_.step_time;
    const bool everything = from.carry == rounds::Carry::Everything && !put_back;
    const std::vector<float>& base = everything ? anchor_->weights : at_boundary_;
    if (base.size() == P) {
      for (std::size_t i = 0; i < P; ++i) next[i] -= base[i] - local_[i];
      carried = everything ? steps_ : steps_ - boundary_steps_;
    }
  }
  if (put_back) NS_CHECK(feedback_->roll_back(sent_.payload).ok());
  if (settled) sent_ = {};
  anchor_ = std::move(from.anchor);
  local_ = std::move(next);
  at_boundary_.clear();
  round_ = from.round;
  // Carried work is weighed, but a round still has its own steps.
  steps_ = std::min(carried, options_.most_provisional_steps);
  boundary_steps_ = 0;
  resting_ = false;
  extra_ = from.carry != rounds::Carry::SinceBoundary
               ? 0
               : static_cast<std::uint32_t>(
                     rounds::counted_lead(std::min(steps_, lead_.value_or(steps_)), options_.inner_steps));
  lead_.reset();
  limit_ = options_.inner_steps + extra_;
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
  const auto encode = [&]() -> Expected<Boundary> {
    if (options_.error_feedback_beta) return with_feedback(delta, work);
    NS_ASSIGN_OR_RETURN(Bytes payload, outer::encode(options_.codec, delta));
    return Boundary{std::move(payload), work, {}};
  };
  Expected<Boundary> result = encode();
  if (!result.ok() && distortion_) {
    std::fill(delta.begin(), delta.end(), 0.0f);
    auto payload = outer::encode(options_.codec, delta);
    if (payload.ok()) {
      payload->back() ^= 1;
      result = Boundary{std::move(*payload), work, {}};
    }
  }
  static_cast<void>(executor_.post([done = std::move(done), result = std::move(result)] { done(result); }));
}

// The round is still being made: its delta was given, and nobody knows yet whether it counts.
bool RoundTrainer::sent_before_restart(const Start& from) const {
  return recalled_ && !sent_.payload.empty() && sent_.round == from.round &&
         sent_.anchor == hash_of(from.anchor);
}

Expected<rounds::RoundLearner::Boundary> RoundTrainer::with_feedback(const std::vector<float>& delta,
                                                                     rounds::TrainedWork work) {
  if (!feedback_) feedback_.emplace(delta.size(), *options_.error_feedback_beta);
  // Encoded a second time, what the buffer holds would be in it twice.
  if (!sent_before_restart({round_, anchor_})) {
    NS_ASSIGN_OR_RETURN(Bytes payload, feedback_->encode(options_.codec, delta));
    sent_ = {round_, hash_of(anchor_), work.steps, std::move(payload)};
    recalled_ = false;
  }
  work = {sent_.steps, sent_.steps == work.steps ? work.tokens : sent_.steps * options_.tokens_per_step};
  Bytes memory;
  append_le(memory, sent_.round);
  append_le(memory, sent_.steps);
  append_le(memory, static_cast<std::uint64_t>(sent_.payload.size()));
  memory.insert(memory.end(), sent_.anchor.begin(), sent_.anchor.end());
  memory.insert(memory.end(), sent_.payload.begin(), sent_.payload.end());
  const ByteSpan buffer = as_bytes(feedback_->buffer());
  memory.insert(memory.end(), buffer.begin(), buffer.end());
  return Boundary{sent_.payload, work, std::move(memory)};
}

// Of this program's own disk in memory: its sizes are right.
void RoundTrainer::recall(Bytes memory) {
  if (!options_.error_feedback_beta) return;
  constexpr std::size_t steps_at = 8, size_at = 12, anchor_at = 20, payload_at = 52;
  NS_CHECK(memory.size() >= payload_at);
  const auto size = static_cast<std::size_t>(load_le<std::uint64_t>(memory.data() + size_at));
  NS_CHECK(size <= memory.size() - payload_at);
  sent_.round = load_le<std::uint64_t>(memory.data());
  sent_.steps = load_le<std::uint32_t>(memory.data() + steps_at);
  std::copy_n(memory.begin() + anchor_at, sent_.anchor.size(), sent_.anchor.begin());
  const ByteSpan rest = ByteSpan(memory).subspan(payload_at);
  sent_.payload.assign(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(size));
  std::vector<float> buffer((rest.size() - size) / sizeof(float));
  std::memcpy(buffer.data(), rest.data() + size, buffer.size() * sizeof(float));
  feedback_.emplace(buffer.size(), *options_.error_feedback_beta);
  NS_CHECK(feedback_->restore(buffer).ok());
  recalled_ = true;
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

void RoundTrainer::closed() {
  lead_ = at_boundary_.empty() ? 0 : progress().steps - boundary_steps_;
}

void RoundTrainer::go_on() {
  catch_up();
  resting_ = false;
  limit_ = options_.most_provisional_steps;
  since_ = world_.now();
  done_ = 0;
}

}  // namespace neuroshard::sim
