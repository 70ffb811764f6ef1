#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/crypto/hash.h"
#include "core/engine/detail/fragment_trainer.h"

namespace neuroshard::engine {
namespace {

// The slice of `values` from `first` on that `room` has space for.
Span<float> slice_at(std::uint64_t first, std::uint64_t values, std::vector<float>& room) {
  room.resize(static_cast<std::size_t>(std::min<std::uint64_t>(RoundTrainer::slice_values, values - first)));
  return room;
}

Expected<Hash256> hash_weights(const outer::ValueSource& weights) {
  crypto::Sha256 hash;
  std::vector<float> room;
  for (std::uint64_t at = 0; at < weights.count; at += room.size()) {
    const Span<float> slice = slice_at(at, weights.count, room);
    NS_RETURN_IF_ERROR(weights.read(at, slice));
    hash.update(as_bytes(slice));
  }
  return hash.finish();
}

}  // namespace

// ---- the executor of the chain's node ----

void RoundTrainer::FragmentTrainer::start(Start from) {
  std::function<void(Expected<Boundary>)> dropped;
  {
    std::lock_guard lock(all_.mutex_);
    if (!*all_.heard_) return;  // from a round of the model before
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

void RoundTrainer::FragmentTrainer::recall(ByteSourcePtr memory) {
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
  forget_boundary();
  from_memory_ = sent_.payload != nullptr;
  started_ = false;
  work_ = {};
  // A model that is made again in the middle of a round begins with the round's anchor.
  if (newest_ && !pending_) {
    newest_->carry = rounds::Carry::Nothing;
    pending_ = newest_;
  }
}

void RoundTrainer::FragmentTrainer::forget() {
  pending_.reset();
  newest_.reset();
  boundary_.reset();
  recalled_.reset();
  feedback_.reset();
  sent_ = {};
  alone_ = false;
}

void RoundTrainer::FragmentTrainer::detach() {
  anchor_.reset();
  waiting_.reset();
  forget_boundary();
  started_ = false;
}

void RoundTrainer::FragmentTrainer::forget_boundary() {
  at_boundary_.reset();
  boundary_in_model_ = false;
}

bool RoundTrainer::FragmentTrainer::may_train() const {
  return started_ && work_.steps < (alone_ ? most_steps_alone() : most_steps_);
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
void RoundTrainer::FragmentTrainer::take_recalled(std::uint64_t values) {
  std::optional<RoundMemory> memory;
  {
    std::lock_guard lock(all_.mutex_);
    memory.swap(recalled_);
  }
  if (!memory) return;
  outer::ErrorFeedback feedback(values, *all_.options_.error_feedback_beta, *all_.spool_);
  if (const auto restored = feedback.restore(memory->buffer); !restored.ok())
    return all_.logger_.warning("rounds", restored.error().describe());
  feedback_ = std::move(feedback);
  sent_ = std::move(*memory);
  sent_.buffer.reset();
  from_memory_ = true;
}

// The round's delta was sent before training opened again, and it is not known yet whether it counts.
bool RoundTrainer::FragmentTrainer::is_open(std::uint64_t round, const Hash256& anchor) const {
  return sent_.payload && sent_.round == round && sent_.anchor == anchor;
}

Expected<rounds::TrainedWork> RoundTrainer::FragmentTrainer::put_new(const Start& from, bool put_back) {
  rounds::TrainedWork own, carried;
  {
    std::lock_guard lock(all_.mutex_);
    own = work_;
  }
  const outer::ValueSource anchor = from.anchor->weights();
  const bool all = from.carry == rounds::Carry::Everything && !put_back;
  std::optional<outer::ValueSource> base;
  if (all && anchor_) base = anchor_->weights();
  if (!all && from.carry != rounds::Carry::Nothing && at_boundary_)
    base = outer::values_of(at_boundary_, 0, fragment_.count);
  if (base && base->count != anchor.count) base.reset();
  if (base)
    carried =
        all ? own : rounds::TrainedWork{own.steps - boundary_work_.steps, own.tokens - boundary_work_.tokens};
  NS_RETURN_IF_ERROR(write_weights(anchor, base));
  const bool fetched = all_.model_->fresh_moments() && from.round > 1;
  if (fetched && all_.since_arrival_ == 0) all_.since_arrival_ = 1;
  return carried;
}

Expected<void> RoundTrainer::FragmentTrainer::write_weights(const outer::ValueSource& anchor,
                                                            const std::optional<outer::ValueSource>& base) {
  Expected<void> written = write_slices(anchor, base);
  all_.model_->weights_written();
  return written;
}

Expected<void> RoundTrainer::FragmentTrainer::write_slices(const outer::ValueSource& anchor,
                                                           const std::optional<outer::ValueSource>& base) {
  std::vector<float> next_room, base_room, local_room;
  for (std::uint64_t at = 0; at < anchor.count; at += next_room.size()) {
    const Span<float> next = slice_at(at, anchor.count, next_room);
    NS_RETURN_IF_ERROR(anchor.read(at, next));
    if (base) {
      const Span<float> from = slice_at(at, anchor.count, base_room);
      const Span<float> local = slice_at(at, anchor.count, local_room);
      NS_RETURN_IF_ERROR(base->read(at, from));
      NS_RETURN_IF_ERROR(all_.model_->read_weights(fragment_.first + at, local));
      for (std::size_t i = 0; i < next.size(); ++i) next[i] -= from[i] - local[i];
    }
    NS_RETURN_IF_ERROR(all_.model_->write_weights(fragment_.first + at, next));
  }
  return {};
}

Expected<Hash256> RoundTrainer::FragmentTrainer::hash_of(const rounds::Anchor& anchor) {
  if (!waiting_ || waiting_->anchor != anchor) {
    NS_ASSIGN_OR_RETURN(const Hash256 hash, hash_weights(anchor->weights()));
    waiting_ = Hashed{anchor, hash};
  }
  return waiting_->hash;
}

Expected<void> RoundTrainer::FragmentTrainer::put_in(Start from) {
  const std::uint64_t values = from.anchor->counts.weights;
  NS_CHECK(values == fragment_.count);
  NS_ASSIGN_OR_RETURN(const Hash256 hash, hash_of(from.anchor));
  take_recalled(values);
  const bool settled = !is_open(from.round, hash);
  // The restored part is in the next delta: it is not carried as well.
  const bool put_back = settled && !from.counted && feedback_ && sent_.payload;
  // First, because it needs room in the spool, and nothing has changed if there is none.
  if (put_back) NS_RETURN_IF_ERROR(feedback_->roll_back(all_.options_.codec, sent_.payload));
  const bool new_anchor = !goes_on_from_checkpoint(from, hash);
  rounds::TrainedWork carried{static_cast<std::uint32_t>(restored_.steps), restored_.tokens};
  if (new_anchor) {
    NS_ASSIGN_OR_RETURN(carried, put_new(from, put_back));
  }
  if (settled) sent_ = {};
  waiting_.reset();
  forget_boundary();
  boundary_work_ = {};
  anchor_ = from.anchor;
  anchor_hash_ = hash;
  all_.model_->begin_round(from.round, from.beacon);
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
  Expected<Boundary> result = boundary_of_model(asked.after);
  {
    std::lock_guard lock(all_.mutex_);
    end_ = work_.steps;
    given_ = true;
    most_steps_ = asked.after == rounds::AfterBoundary::Rest ? 0 : work_.steps + all_.options_.inner_steps;
  }
  all_.answer(asked.done, std::move(result));
  return {};
}

Expected<rounds::RoundLearner::Boundary> RoundTrainer::FragmentTrainer::boundary_of_model(
    rounds::AfterBoundary after) {
  // A stage changes its weights while its own training rests.
  const bool stays = after == rounds::AfterBoundary::Rest && all_.options_.parts.empty();
  ByteSourcePtr local;
  if (!stays) {
    NS_ASSIGN_OR_RETURN(local, all_.copy_weights(*all_.model_, fragment_));
  }
  NS_ASSIGN_OR_RETURN(Boundary boundary, encode_delta());
  at_boundary_ = std::move(local);
  boundary_in_model_ = stays;
  {
    // A payload that is given again may be of more steps than the model here has made.
    std::lock_guard lock(all_.mutex_);
    boundary_work_ = work_;
  }
  // The batches of a payload from an earlier session are not known any more.
  if (!from_memory_) boundary.batches = all_.model_->last_batches(boundary.work.steps);
  return boundary;
}

Expected<void> RoundTrainer::FragmentTrainer::before_training() {
  if (!boundary_in_model_) return {};
  NS_ASSIGN_OR_RETURN(at_boundary_, all_.copy_weights(*all_.model_, fragment_));
  boundary_in_model_ = false;
  return {};
}

outer::ValueSource RoundTrainer::FragmentTrainer::delta() const {
  const auto local = std::make_shared<std::vector<float>>();
  return {fragment_.count,
          [this, anchor = anchor_->weights(), local](std::uint64_t first, Span<float> out) -> Expected<void> {
            local->resize(out.size());
            NS_RETURN_IF_ERROR(anchor.read(first, out));
            NS_RETURN_IF_ERROR(all_.model_->read_weights(fragment_.first + first, *local));
            for (std::size_t i = 0; i < out.size(); ++i) out[i] -= (*local)[i];
            return {};
          }};
}

Expected<rounds::RoundLearner::Boundary> RoundTrainer::FragmentTrainer::encode_delta() {
  rounds::TrainedWork work;
  {
    std::lock_guard lock(all_.mutex_);
    work = work_;
  }
  if (all_.options_.error_feedback_beta) return with_feedback(work);
  const outer::CodecOptions& codec = all_.options_.codec;
  NS_ASSIGN_OR_RETURN(const std::unique_ptr<SpoolItem> item,
                      all_.spool_->create(outer::max_payload_bytes(codec, fragment_.count)));
  NS_ASSIGN_OR_RETURN(const std::uint64_t size, outer::encode(codec, delta(), *item));
  NS_ASSIGN_OR_RETURN(ByteSourcePtr payload, item->finish(size));
  return Boundary{std::move(payload), work, {}};
}

Expected<rounds::RoundLearner::Boundary> RoundTrainer::FragmentTrainer::with_feedback(
    rounds::TrainedWork work) {
  if (!feedback_) feedback_.emplace(fragment_.count, *all_.options_.error_feedback_beta, *all_.spool_);
  // A second encoding would add the delta to the buffer twice. The first may be of before a restart, or its
  // contribution could not be kept.
  if (!sent_.payload || sent_.round != round_ || sent_.anchor != anchor_hash_) {
    NS_ASSIGN_OR_RETURN(ByteSourcePtr payload, feedback_->encode(all_.options_.codec, delta()));
    sent_ = {round_, anchor_hash_, work, std::move(payload), {}};
    from_memory_ = false;
  }
  RoundMemory memory = sent_;
  memory.buffer = feedback_->buffer();
  NS_ASSIGN_OR_RETURN(ByteSourcePtr record, encode_round_memory(memory));
  return Boundary{sent_.payload, sent_.work, std::move(record)};
}

}  // namespace neuroshard::engine
