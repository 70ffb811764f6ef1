#include "core/engine/round_trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/crypto/hash.h"
#include "core/train/schedule.h"

namespace neuroshard::engine {
namespace {

Hash256 hash_weights(const std::vector<float>& weights) {
  return crypto::sha256(as_bytes(Span<const float>(weights)));
}

}  // namespace

RoundTrainer::RoundTrainer(RoundTrainerOptions options, const Clock& clock, Logger& logger)
    : options_(options), clock_(clock), logger_(logger) {
  NS_CHECK(options_.inner_steps >= 1);
}

// ---- the executor of the round's node ----

void RoundTrainer::listen(Listener listener) {
  std::lock_guard lock(mutex_);
  listener_ = std::move(listener);
  tell_ready();
}

void RoundTrainer::tell_ready() {
  if (listener_.executor == nullptr || !facts_) return;
  if (!listener_.executor->post([ready = listener_.ready, facts = *facts_] { ready(facts); }))
    logger_.warning("rounds", "the node's queue is full: this node does not take part in the rounds");
  facts_->state.reset();  // large, and whoever listens has it
  told_ = true;
}

void RoundTrainer::start(Start from) {
  std::function<void(Expected<Boundary>)> dropped;
  {
    std::lock_guard lock(mutex_);
    if (const auto asked = std::exchange(boundary_, std::nullopt)) dropped = asked->done;
    // Nothing was trained from a start that the training has not seen: what there is to carry is still what
    // that one would have carried.
    if (pending_) {
      from.carry = pending_->carry;
      from.counted = from.counted || pending_->counted;
    }
    newest_ = from;
    pending_ = std::move(from);
    alone_ = false;
  }
  changed_.notify_all();
  if (dropped) answer(std::move(dropped), make_error(ErrorCode::Cancelled, "the round was over before"));
}

rounds::TrainedWork RoundTrainer::progress() const {
  std::lock_guard lock(mutex_);
  return pending_ || !started_ ? rounds::TrainedWork{} : work_;
}

void RoundTrainer::boundary(rounds::AfterBoundary after, std::function<void(Expected<Boundary>)> done) {
  {
    std::lock_guard lock(mutex_);
    boundary_ = Asked{after, std::move(done)};
  }
  changed_.notify_all();
}

void RoundTrainer::go_on() {
  {
    std::lock_guard lock(mutex_);
    alone_ = true;
  }
  changed_.notify_all();
}

void RoundTrainer::recall(Bytes memory) {
  if (!options_.error_feedback_beta) return;
  auto decoded = decode_round_memory(memory);
  if (!decoded.ok()) return logger_.warning("rounds", decoded.error().describe());
  std::lock_guard lock(mutex_);
  recalled_ = std::move(*decoded);
}

void RoundTrainer::answer(std::function<void(Expected<Boundary>)> done, Expected<Boundary> result) {
  std::lock_guard lock(mutex_);
  if (listener_.executor == nullptr) return;
  auto shared = std::make_shared<Expected<Boundary>>(std::move(result));
  if (!listener_.executor->post([done = std::move(done), shared] { done(std::move(*shared)); }))
    logger_.warning("rounds", "the node's queue is full: this round is without this node's work");
}

// ---- the compute thread ----

Expected<void> RoundTrainer::attach(RoundModel& model) {
  std::shared_ptr<rounds::OuterState> state;
  if (!told_) {
    state = std::make_shared<rounds::OuterState>();
    state->weights.resize(static_cast<std::size_t>(model.parameters()));
    NS_RETURN_IF_ERROR(model.read_weights(state->weights));
    state->momentum.assign(state->weights.size(), 0.0f);
  }
  model_ = &model;
  first_start_ = true;
  since_arrival_ = 0;
  at_boundary_.clear();
  std::lock_guard lock(mutex_);
  facts_ = RoundFacts{model.parameters(), model.tokenizer_hash(), std::move(state)};
  started_ = false;
  work_ = {};
  // A model that is made anew in the middle of a round begins with the round's anchor.
  if (newest_ && !pending_) {
    newest_->carry = rounds::Carry::Nothing;
    pending_ = newest_;
  }
  tell_ready();
  return {};
}

void RoundTrainer::detach() {
  model_ = nullptr;
  anchor_.reset();
  std::vector<float>().swap(at_boundary_);
  std::lock_guard lock(mutex_);
  started_ = false;
  facts_.reset();
}

bool RoundTrainer::asked() const {
  return pending_ || (boundary_ && started_);
}

bool RoundTrainer::may_train() const {
  const std::uint64_t alone = std::uint64_t{options_.inner_steps} * options_.most_rounds_alone;
  return started_ && work_.steps < (alone_ ? alone : most_steps_);
}

Expected<RoundTrainer::Turn> RoundTrainer::before_step() {
  if (model_ == nullptr) return Turn::Train;  // a model that takes no part
  const MonotonicTime begin = clock_.monotonic_now();
  bool waited = false;
  while (true) {
    std::optional<Start> from;
    std::optional<Asked> asked_now;
    {
      std::unique_lock lock(mutex_);
      if (!asked() && !may_train() && !waited) {
        waited = true;
        changed_.wait_for(lock, options_.longest_rest, [this] { return asked() || may_train(); });
        rested_ += clock_.monotonic_now() - begin;
      }
      if (pending_) {
        from = pending_;
      } else if (boundary_ && started_) {
        asked_now = std::exchange(boundary_, std::nullopt);
      } else if (!may_train()) {
        return Turn::Rest;
      } else {
        turned_ = clock_.monotonic_now();
        break;
      }
    }
    if (from) NS_RETURN_IF_ERROR(put_in(std::move(*from)));
    if (asked_now) NS_RETURN_IF_ERROR(make_boundary(*asked_now));
  }
  set_schedule();
  return Turn::Train;
}

void RoundTrainer::set_schedule() {
  rounds::TrainedWork work;
  {
    std::lock_guard lock(mutex_);
    work = work_;
  }
  const double factor = since_arrival_ > 0 ? train::rewarm_factor(since_arrival_) : 1.0;
  model_->set_schedule((round_ - 1) * options_.inner_steps + work.steps + 1, factor);
  model_->set_place({round_, anchor_hash_, work.steps, work.tokens});
}

void RoundTrainer::after_step(std::uint64_t tokens) {
  if (model_ == nullptr) return;
  if (since_arrival_ > 0) ++since_arrival_;
  std::lock_guard lock(mutex_);
  ++work_.steps;
  work_.tokens += tokens;
  trained_ += clock_.monotonic_now() - turned_;
  if (work_.steps == options_.inner_steps && !pending_) tell_progress();
}

// Lost when the queue is full: the node looks by itself, too.
void RoundTrainer::tell_progress() {
  if (listener_.executor != nullptr) static_cast<void>(listener_.executor->post(listener_.progressed));
}

// The round's own work, if the model that was read from the checkpoint is in the middle of this round.
bool RoundTrainer::goes_on_from_checkpoint(const Start& from, const Hash256& anchor) {
  const RoundPlace& place = model_->place();
  return std::exchange(first_start_, false) && place.round == from.round && place.anchor == anchor &&
         place.steps <= std::uint64_t{options_.inner_steps} * options_.most_rounds_alone;
}

// Once, with the first start after a restart.
void RoundTrainer::take_recalled(std::size_t values) {
  std::optional<RoundMemory> memory;
  {
    std::lock_guard lock(mutex_);
    memory.swap(recalled_);
  }
  if (!memory) return;
  outer::ErrorFeedback feedback(values, *options_.error_feedback_beta);
  if (const auto restored = feedback.restore(memory->buffer); !restored.ok())
    return logger_.warning("rounds", restored.error().describe());
  feedback_ = std::move(feedback);
  sent_ = std::move(*memory);
  std::vector<float>().swap(sent_.buffer);
  from_memory_ = true;
}

// The round is still being made: its delta was given, and nobody knows yet whether it counts.
bool RoundTrainer::was_sent_before_restart(std::uint64_t round, const Hash256& anchor) const {
  return from_memory_ && !sent_.payload.empty() && sent_.round == round && sent_.anchor == anchor;
}

Expected<void> RoundTrainer::put_in(Start from) {
  const std::size_t P = from.anchor->weights.size();
  NS_CHECK(P == model_->parameters());
  const Hash256 hash = hash_weights(from.anchor->weights);
  take_recalled(P);
  const bool settled = !was_sent_before_restart(from.round, hash);
  const bool fetched = model_->fresh_moments() && from.round > 1;
  // What is put back is in the next delta: it is not carried, too.
  const bool put_back = settled && !from.counted && feedback_ && !sent_.payload.empty();
  rounds::TrainedWork carried, own;
  {
    std::lock_guard lock(mutex_);
    own = work_;
  }
  const bool new_anchor = !goes_on_from_checkpoint(from, hash);
  if (!new_anchor) {
    carried = {static_cast<std::uint32_t>(model_->place().steps), model_->place().tokens};
  } else {
    std::vector<float> next = from.anchor->weights;
    const bool all = from.carry == rounds::Carry::Everything && !put_back;
    const std::vector<float>* base = nullptr;
    if (all && anchor_) base = &anchor_->weights;
    if (!all && from.carry != rounds::Carry::Nothing && !at_boundary_.empty()) base = &at_boundary_;
    if (base != nullptr && base->size() == P) {
      std::vector<float> local(P);
      NS_RETURN_IF_ERROR(model_->read_weights(local));
      for (std::size_t i = 0; i < P; ++i) next[i] -= (*base)[i] - local[i];
      carried =
          all ? own
              : rounds::TrainedWork{own.steps - boundary_work_.steps, own.tokens - boundary_work_.tokens};
    }
    NS_RETURN_IF_ERROR(model_->write_weights(next));
    if (fetched && since_arrival_ == 0) since_arrival_ = 1;
  }
  if (put_back) NS_RETURN_IF_ERROR(feedback_->roll_back(sent_.payload));
  if (settled) sent_ = {};
  std::vector<float>().swap(at_boundary_);
  boundary_work_ = {};
  anchor_ = from.anchor;
  anchor_hash_ = hash;
  round_ = from.round;
  model_->set_place({round_, anchor_hash_, carried.steps, carried.tokens});
  if (new_anchor && round_ > 1) model_->synced();
  std::lock_guard lock(mutex_);
  // Another one may have come meanwhile: then that is next.
  if (pending_ && pending_->round == from.round && pending_->anchor == from.anchor) pending_.reset();
  work_ = carried;
  started_ = true;
  most_steps_ = options_.inner_steps;
  if (work_.steps >= most_steps_) tell_progress();
  return {};
}

Expected<void> RoundTrainer::make_boundary(const Asked& asked) {
  std::vector<float> local(anchor_->weights.size());
  NS_RETURN_IF_ERROR(model_->read_weights(local));
  Expected<Boundary> result = encode_delta(local);
  if (result.ok()) {
    at_boundary_ = std::move(local);
    boundary_work_ = result->work;
  }
  {
    std::lock_guard lock(mutex_);
    most_steps_ = asked.after == rounds::AfterBoundary::Rest ? 0 : work_.steps + options_.inner_steps;
  }
  answer(asked.done, std::move(result));
  return {};
}

Expected<rounds::RoundLearner::Boundary> RoundTrainer::encode_delta(const std::vector<float>& local) {
  std::vector<float> delta(local.size());
  for (std::size_t i = 0; i < delta.size(); ++i) delta[i] = anchor_->weights[i] - local[i];
  rounds::TrainedWork work;
  {
    std::lock_guard lock(mutex_);
    work = work_;
  }
  if (options_.error_feedback_beta) return with_feedback(delta, work);
  NS_ASSIGN_OR_RETURN(Bytes payload, outer::encode(options_.codec, delta));
  return Boundary{std::move(payload), work, {}};
}

Expected<rounds::RoundLearner::Boundary> RoundTrainer::with_feedback(const std::vector<float>& delta,
                                                                     rounds::TrainedWork work) {
  if (!feedback_) feedback_.emplace(delta.size(), *options_.error_feedback_beta);
  // Encoded a second time, what the buffer holds would be in it twice.
  if (!was_sent_before_restart(round_, anchor_hash_)) {
    NS_ASSIGN_OR_RETURN(Bytes payload, feedback_->encode(options_.codec, delta));
    sent_ = {round_, anchor_hash_, work, std::move(payload), {}};
    from_memory_ = false;
  }
  return Boundary{sent_.payload, sent_.work, encode_round_memory(sent_, feedback_->buffer())};
}

RoundTrainer::View RoundTrainer::view() const {
  std::lock_guard lock(mutex_);
  return {work_, rested_, trained_, !may_train()};
}

}  // namespace neuroshard::engine
