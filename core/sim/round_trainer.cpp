#include "core/sim/round_trainer.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/crypto/hash.h"

namespace neuroshard::sim {
namespace {

// The world's disks are in memory: reading never fails.
std::vector<float> weights_of(const rounds::Anchor& anchor) {
  return outer::read_all(anchor->weights()).value();
}

Hash256 hash_of(const rounds::Anchor& anchor) {
  return crypto::sha256(as_bytes(Span<const float>(weights_of(anchor))));
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
  std::vector<float> next = weights_of(from.anchor);
  const std::size_t P = next.size();
  std::uint32_t carried = 0;
  // The step that runs is not interrupted by an anchor that training does not wait for.
  Duration running{};
  const bool settled = !sent_before_restart(from);
  const bool put_back = settled && !from.counted && feedback_ && sent_.payload;
  if (from.carry != rounds::Carry::Nothing && anchor_ && local_.size() == P) {
    if (!resting_ && steps_ < limit_) running = (world_.now() - since_) - done_ * options_.step_time;
    const bool everything = from.carry == rounds::Carry::Everything && !put_back;
    const std::vector<float> base = everything ? weights_of(anchor_) : at_boundary_;
    if (base.size() == P) {
      for (std::size_t i = 0; i < P; ++i) next[i] -= base[i] - local_[i];
      carried = everything ? steps_ : steps_ - boundary_steps_;
    }
  }
  if (put_back) NS_CHECK(feedback_->roll_back(options_.codec, sent_.payload).ok());
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
    return Boundary{in_memory(std::move(payload)), work, {}};
  };
  Expected<Boundary> result = encode();
  if (!result.ok() && distortion_) {
    std::fill(delta.begin(), delta.end(), 0.0f);
    auto payload = outer::encode(options_.codec, delta);
    if (payload.ok()) {
      payload->back() ^= 1;
      result = Boundary{in_memory(std::move(*payload)), work, {}};
    }
  }
  static_cast<void>(executor_.post([done = std::move(done), result = std::move(result)] { done(result); }));
}

// The round is still being made: its delta was given, and nobody knows yet whether it counts.
bool RoundTrainer::sent_before_restart(const Start& from) const {
  return recalled_ && sent_.payload && sent_.round == from.round && sent_.anchor == hash_of(from.anchor);
}

Expected<rounds::RoundLearner::Boundary> RoundTrainer::with_feedback(const std::vector<float>& delta,
                                                                     rounds::TrainedWork work) {
  if (!feedback_) feedback_.emplace(delta.size(), *options_.error_feedback_beta, spool_);
  // Encoded a second time, what the buffer holds would be in it twice.
  if (!sent_before_restart({round_, anchor_})) {
    NS_ASSIGN_OR_RETURN(ByteSourcePtr payload, feedback_->encode(options_.codec, outer::values_of(delta)));
    sent_ = {round_, hash_of(anchor_), work.steps, std::move(payload)};
    recalled_ = false;
  }
  work = {sent_.steps, sent_.steps == work.steps ? work.tokens : sent_.steps * options_.tokens_per_step};
  Bytes memory;
  append_le(memory, sent_.round);
  append_le(memory, sent_.steps);
  append_le(memory, sent_.payload->size());
  memory.insert(memory.end(), sent_.anchor.begin(), sent_.anchor.end());
  return Boundary{sent_.payload, work,
                  joined({in_memory(std::move(memory)), sent_.payload, feedback_->buffer()})};
}

// Of this program's own disk in memory: its sizes are right.
void RoundTrainer::recall(ByteSourcePtr memory) {
  if (!options_.error_feedback_beta) return;
  constexpr std::size_t steps_at = 8, size_at = 12, anchor_at = 20, payload_at = 52;
  Bytes head(payload_at);
  NS_CHECK(memory->read_at(0, head).ok());
  const auto size = load_le<std::uint64_t>(head.data() + size_at);
  NS_CHECK(size <= memory->size() - payload_at);
  sent_.round = load_le<std::uint64_t>(head.data());
  sent_.steps = load_le<std::uint32_t>(head.data() + steps_at);
  std::copy_n(head.begin() + anchor_at, sent_.anchor.size(), sent_.anchor.begin());
  sent_.payload = part_of(memory, payload_at, size);
  const std::uint64_t buffer = memory->size() - payload_at - size;
  feedback_.emplace(buffer / sizeof(float), *options_.error_feedback_beta, spool_);
  NS_CHECK(feedback_->restore(part_of(memory, payload_at + size, buffer)).ok());
  recalled_ = true;
}

std::vector<float> RoundTrainer::delta_now() {
  catch_up();
  if (!anchor_) return {};
  std::vector<float> delta = weights_of(anchor_);
  for (std::size_t i = 0; i < delta.size(); ++i) delta[i] -= local_[i];
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
