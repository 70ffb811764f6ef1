#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/crypto/hash.h"
#include "core/engine/detail/fragment_trainer.h"

namespace neuroshard::engine {
namespace {

Hash256 hash_weights(const std::vector<float>& weights) {
  return crypto::sha256(as_bytes(Span<const float>(weights)));
}

}  // namespace

// ---- the executor of the chain's node ----

void RoundTrainer::FragmentTrainer::start(Start from) {
  std::function<void(Expected<Boundary>)> dropped;
  {
    std::lock_guard lock(all_.mutex_);
    if (const auto asked = std::exchange(boundary_, std::nullopt)) dropped = asked->done;
    // The training has made no step from a start that it has not taken yet, so the new start carries the same
    // work as the earlier one.
    if (pending_) {
      from.carry = pending_->carry;
      from.counted = from.counted || pending_->counted;
    }
    newest_ = from;
    pending_ = std::move(from);
    alone_ = false;
  }
  all_.changed_.notify_all();
  if (dropped) all_.answer(std::move(dropped), make_error(ErrorCode::Cancelled, "the round ended first"));
}

rounds::TrainedWork RoundTrainer::FragmentTrainer::progress() const {
  std::lock_guard lock(all_.mutex_);
  return pending_ || !started_ ? rounds::TrainedWork{} : work_;
}

bool RoundTrainer::FragmentTrainer::ends_early() const {
  std::lock_guard lock(all_.mutex_);
  if (pending_ || !started_) return false;
  return end_ < all_.options_.inner_steps + extra_ && work_.steps >= end_;
}

std::uint32_t RoundTrainer::FragmentTrainer::extra_steps() const {
  std::lock_guard lock(all_.mutex_);
  return pending_ ? 0 : static_cast<std::uint32_t>(extra_);
}

void RoundTrainer::FragmentTrainer::closed() {
  std::lock_guard lock(all_.mutex_);
  if (!pending_ && started_) lead_ = given_ ? work_.steps - end_ : 0;
}

// Without a closed() call, the lead is all work between the boundary and the anchor.
std::uint64_t RoundTrainer::FragmentTrainer::take_lead(rounds::Carry carry, std::uint64_t carried) {
  const std::uint64_t lead = lead_.value_or(carried);
  lead_.reset();
  given_ = false;
  if (carry != rounds::Carry::SinceBoundary) return 0;
  return rounds::counted_lead(std::min(lead, carried), all_.options_.inner_steps);
}

void RoundTrainer::FragmentTrainer::boundary(rounds::AfterBoundary after,
                                             std::function<void(Expected<Boundary>)> done) {
  {
    std::lock_guard lock(all_.mutex_);
    boundary_ = Asked{after, std::move(done)};
  }
  all_.changed_.notify_all();
}

void RoundTrainer::FragmentTrainer::go_on() {
  {
    std::lock_guard lock(all_.mutex_);
    alone_ = true;
  }
  all_.changed_.notify_all();
}

void RoundTrainer::FragmentTrainer::recall(Bytes memory) {
  if (!all_.options_.error_feedback_beta) return;
  auto decoded = decode_round_memory(memory);
  if (!decoded.ok()) return all_.logger_.warning("rounds", decoded.error().describe());
  std::lock_guard lock(all_.mutex_);
  recalled_ = std::move(*decoded);
}

// ---- the compute thread ----

void RoundTrainer::FragmentTrainer::attach(const rounds::Fragment& fragment, const RoundPlace& restored) {
  fragment_ = fragment;
  restored_ = restored;
  first_start_ = true;
  at_boundary_.clear();
  started_ = false;
  work_ = {};
  // A model that is made again in the middle of a round begins with the round's anchor.
  if (newest_ && !pending_) {
    newest_->carry = rounds::Carry::Nothing;
    pending_ = newest_;
  }
}

void RoundTrainer::FragmentTrainer::detach() {
  anchor_.reset();
  std::vector<float>().swap(at_boundary_);
  started_ = false;
}

bool RoundTrainer::FragmentTrainer::may_train() const {
  const std::uint64_t alone = std::uint64_t{all_.options_.inner_steps} * all_.options_.most_rounds_alone;
  return started_ && work_.steps < (alone_ ? alone : most_steps_);
}

Expected<void> RoundTrainer::FragmentTrainer::serve() {
  std::optional<Start> from;
  std::optional<Asked> asked_now;
  {
    std::lock_guard lock(all_.mutex_);
    if (pending_)
      from = pending_;
    else if (started_)
      asked_now = std::exchange(boundary_, std::nullopt);
  }
  if (from) return put_in(std::move(*from));
  if (asked_now) return make_boundary(*asked_now);
  return {};
}

bool RoundTrainer::FragmentTrainer::after_step(std::uint64_t tokens) {
  ++work_.steps;
  work_.tokens += tokens;
  return work_.steps == end_ && !pending_;
}

// Until a fragment has begun, its weights are those of the checkpoint.
RoundPlace RoundTrainer::FragmentTrainer::place() const {
  std::lock_guard lock(all_.mutex_);
  return started_ ? RoundPlace{round_, anchor_hash_, work_.steps, work_.tokens} : restored_;
}

std::uint64_t RoundTrainer::FragmentTrainer::scheduled() const {
  std::lock_guard lock(all_.mutex_);
  const std::uint64_t rounds = round_ <= 1 ? 0 : round_ - 1;
  return rounds * all_.options_.inner_steps / all_.parts_.size() + work_.steps + 1;
}

// Keeps the round's own work if the model that was read from the checkpoint is in the middle of this round.
bool RoundTrainer::FragmentTrainer::goes_on_from_checkpoint(const Start& from, const Hash256& anchor) {
  return std::exchange(first_start_, false) && restored_.round == from.round && restored_.anchor == anchor &&
         restored_.steps <= std::uint64_t{all_.options_.inner_steps} * all_.options_.most_rounds_alone;
}

// Once, with the first start after a restart.
void RoundTrainer::FragmentTrainer::take_recalled(std::size_t values) {
  std::optional<RoundMemory> memory;
  {
    std::lock_guard lock(all_.mutex_);
    memory.swap(recalled_);
  }
  if (!memory) return;
  outer::ErrorFeedback feedback(values, *all_.options_.error_feedback_beta);
  if (const auto restored = feedback.restore(memory->buffer); !restored.ok())
    return all_.logger_.warning("rounds", restored.error().describe());
  feedback_ = std::move(feedback);
  sent_ = std::move(*memory);
  std::vector<float>().swap(sent_.buffer);
  from_memory_ = true;
}

// The round is still open: its delta was sent, and it is not known yet whether it counts.
bool RoundTrainer::FragmentTrainer::was_sent_before_restart(std::uint64_t round,
                                                            const Hash256& anchor) const {
  return from_memory_ && !sent_.payload.empty() && sent_.round == round && sent_.anchor == anchor;
}

Expected<rounds::TrainedWork> RoundTrainer::FragmentTrainer::put_new(const Start& from, bool put_back) {
  rounds::TrainedWork own, carried;
  {
    std::lock_guard lock(all_.mutex_);
    own = work_;
  }
  std::vector<float> next = from.anchor->weights;
  const bool all = from.carry == rounds::Carry::Everything && !put_back;
  const std::vector<float>* base = nullptr;
  if (all && anchor_) base = &anchor_->weights;
  if (!all && from.carry != rounds::Carry::Nothing && !at_boundary_.empty()) base = &at_boundary_;
  if (base != nullptr && base->size() == next.size()) {
    std::vector<float> local(next.size());
    NS_RETURN_IF_ERROR(all_.model_->read_weights(fragment_.first, local));
    for (std::size_t i = 0; i < next.size(); ++i) next[i] -= (*base)[i] - local[i];
    carried =
        all ? own : rounds::TrainedWork{own.steps - boundary_work_.steps, own.tokens - boundary_work_.tokens};
  }
  NS_RETURN_IF_ERROR(all_.model_->write_weights(fragment_.first, next));
  const bool fetched = all_.model_->fresh_moments() && from.round > 1;
  if (fetched && all_.since_arrival_ == 0) all_.since_arrival_ = 1;
  return carried;
}

Expected<void> RoundTrainer::FragmentTrainer::put_in(Start from) {
  const std::size_t values = from.anchor->weights.size();
  NS_CHECK(values == fragment_.count);
  const Hash256 hash = hash_weights(from.anchor->weights);
  take_recalled(values);
  const bool settled = !was_sent_before_restart(from.round, hash);
  // The restored part is in the next delta: it is not carried as well.
  const bool put_back = settled && !from.counted && feedback_ && !sent_.payload.empty();
  const bool new_anchor = !goes_on_from_checkpoint(from, hash);
  rounds::TrainedWork carried{static_cast<std::uint32_t>(restored_.steps), restored_.tokens};
  if (new_anchor) {
    NS_ASSIGN_OR_RETURN(carried, put_new(from, put_back));
  }
  if (put_back) NS_RETURN_IF_ERROR(feedback_->roll_back(sent_.payload));
  if (settled) sent_ = {};
  std::vector<float>().swap(at_boundary_);
  boundary_work_ = {};
  anchor_ = from.anchor;
  anchor_hash_ = hash;
  round_ = from.round;
  {
    std::lock_guard lock(all_.mutex_);
    // Another start may have arrived meanwhile: then that is next.
    if (pending_ && pending_->round == from.round && pending_->anchor == from.anchor) pending_.reset();
    work_ = carried;
    started_ = true;
    extra_ = take_lead(new_anchor ? from.carry : rounds::Carry::Nothing, carried.steps);
    const std::size_t parts = all_.parts_.size();
    end_ = rounds::steps_of_row(fragment_.row, round_, parts, all_.options_.inner_steps) + extra_;
    // Training goes on while the round of another fragment is late.
    most_steps_ = parts == 1 ? end_ : end_ + all_.options_.inner_steps;
    if (work_.steps >= end_) all_.tell_progress();
  }
  all_.note_places();
  // Once a round, with the last fragment: a checkpoint has all of them.
  if (new_anchor && round_ > 1 && this == all_.parts_.back().get()) all_.model_->synced();
  return {};
}

Expected<void> RoundTrainer::FragmentTrainer::make_boundary(const Asked& asked) {
  std::vector<float> local(anchor_->weights.size());
  NS_RETURN_IF_ERROR(all_.model_->read_weights(fragment_.first, local));
  Expected<Boundary> result = encode_delta(local);
  if (result.ok()) {
    at_boundary_ = std::move(local);
    boundary_work_ = result->work;
  }
  {
    std::lock_guard lock(all_.mutex_);
    end_ = work_.steps;
    given_ = true;
    most_steps_ = asked.after == rounds::AfterBoundary::Rest ? 0 : work_.steps + all_.options_.inner_steps;
  }
  all_.answer(asked.done, std::move(result));
  return {};
}

Expected<rounds::RoundLearner::Boundary> RoundTrainer::FragmentTrainer::encode_delta(
    const std::vector<float>& local) {
  std::vector<float> delta(local.size());
  for (std::size_t i = 0; i < delta.size(); ++i) delta[i] = anchor_->weights[i] - local[i];
  rounds::TrainedWork work;
  {
    std::lock_guard lock(all_.mutex_);
    work = work_;
  }
  if (all_.options_.error_feedback_beta) return with_feedback(delta, work);
  NS_ASSIGN_OR_RETURN(Bytes payload, outer::encode(all_.options_.codec, delta));
  return Boundary{std::move(payload), work, {}};
}

Expected<rounds::RoundLearner::Boundary> RoundTrainer::FragmentTrainer::with_feedback(
    const std::vector<float>& delta, rounds::TrainedWork work) {
  if (!feedback_) feedback_.emplace(delta.size(), *all_.options_.error_feedback_beta);
  // A second encoding would add the delta to the buffer twice.
  if (!was_sent_before_restart(round_, anchor_hash_)) {
    NS_ASSIGN_OR_RETURN(Bytes payload, feedback_->encode(all_.options_.codec, delta));
    sent_ = {round_, anchor_hash_, work, std::move(payload), {}};
    from_memory_ = false;
  }
  return Boundary{sent_.payload, sent_.work, encode_round_memory(sent_, feedback_->buffer())};
}

}  // namespace neuroshard::engine
