#include "core/engine/round_trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/engine/detail/fragment_trainer.h"
#include "core/train/schedule.h"

namespace neuroshard::engine {
namespace {

// After a model was made without the network's tokenizer: other nodes did not give it.
constexpr Duration change_pause = std::chrono::minutes(1);

}  // namespace

RoundTrainer::RoundTrainer(RoundTrainerOptions options, std::shared_ptr<Spool> spool, const Clock& clock,
                           Logger& logger)
    : options_(options), spool_(std::move(spool)), clock_(clock), logger_(logger) {
  NS_CHECK(options_.inner_steps >= 1);
  NS_CHECK(options_.fragments >= 1 && options_.fragments <= rounds::max_fragments &&
           options_.fragments <= options_.inner_steps);
  NS_CHECK(options_.parts.empty() || options_.fragments == 1);
  for (std::uint32_t i = 0; i < options_.fragments; ++i)
    parts_.push_back(std::make_unique<FragmentTrainer>(*this));
}

RoundTrainer::~RoundTrainer() = default;

// ---- the executor of the rounds' nodes ----

rounds::RoundLearner& RoundTrainer::learner(std::size_t fragment) {
  return *parts_.at(fragment);
}

void RoundTrainer::listen(Listener listener) {
  std::lock_guard lock(mutex_);
  listener_ = std::move(listener);
  tell_ready();
}

void RoundTrainer::lacks_memory() {
  std::lock_guard lock(mutex_);
  no_memory_ = true;
}

void RoundTrainer::tell_ready() {
  const bool again = std::exchange(tell_again_, false);
  if (listener_.executor == nullptr || !facts_) return;
  const bool told = listener_.executor->post([ready = listener_.ready, facts = *facts_, heard = heard_] {
    *heard = true;
    ready(facts);
  });
  if (!told) {
    if (!again)
      logger_.warning("rounds", "the node's queue is full: this node joins the rounds when it has room");
    tell_again_ = true;
    return;
  }
  facts_->states.clear();  // large, and the listener has them
  told_ = Told{facts_->tokenizer, facts_->own_part};
}

void RoundTrainer::want_tokenizer(const Hash256& tokenizer) {
  std::lock_guard lock(mutex_);
  wanted_.tokenizer = tokenizer;
  changed_.notify_all();
}

void RoundTrainer::want_part(std::uint32_t part) {
  std::lock_guard lock(mutex_);
  wanted_.part = part;
  changed_.notify_all();
}

WantedModel RoundTrainer::wanted_model() const {
  std::lock_guard lock(mutex_);
  return wanted_;
}

bool RoundTrainer::must_change() const {
  if (!facts_) return false;
  if (wanted_.part && *wanted_.part != facts_->own_part) return true;
  return wanted_.tokenizer && facts_->tokenizer != *wanted_.tokenizer &&
         clock_.monotonic_now() >= change_from_;
}

void RoundTrainer::answer(std::function<void(Expected<rounds::RoundLearner::Boundary>)> done,
                          Expected<rounds::RoundLearner::Boundary> result) {
  std::lock_guard lock(mutex_);
  if (listener_.executor == nullptr) return;
  auto shared = std::make_shared<Expected<rounds::RoundLearner::Boundary>>(std::move(result));
  if (!listener_.executor->post([done = std::move(done), shared] { done(std::move(*shared)); }))
    logger_.warning("rounds", "the node's queue is full: this node does not contribute to this round");
}

// ---- the compute thread ----

Expected<void> RoundTrainer::attach(RoundModel& model) {
  const std::uint64_t values = model.parameters();
  spare_memory_ = model.spare_memory();
  if (values < parts_.size())
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("a model of {} values can't be synchronised in {} fragments; its network "
                                  "must be created again with fewer (--sync)",
                                  values, parts_.size()));
  RoundFacts facts = facts_of(model);
  const bool is_new = [&] {
    std::lock_guard lock(mutex_);
    return told_ != Told{facts.tokenizer, facts.own_part};
  }();
  if (is_new) NS_RETURN_IF_ERROR(copy_states(model, facts));
  model_ = &model;
  since_arrival_ = model.since_arrival();
  const std::vector<RoundPlace> places = model.places();
  std::lock_guard lock(mutex_);
  no_memory_ = false;
  if (wanted_.tokenizer && *wanted_.tokenizer != facts.tokenizer)
    change_from_ = clock_.monotonic_now() + change_pause;
  wanted_.part.reset();  // the one here is what its owner and the memory allow
  if (told_ && is_new) heard_ = std::make_shared<std::atomic<bool>>(false);
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (told_ && is_new) parts_[i]->forget();
    parts_[i]->attach(own_fragment(facts, i), places.size() == parts_.size() ? places[i] : RoundPlace{});
  }
  facts_ = std::move(facts);
  tell_ready();
  return {};
}

RoundFacts RoundTrainer::facts_of(const RoundModel& model) const {
  RoundFacts facts;
  facts.tokenizer = model.tokenizer_hash();
  facts.own_part = model.part();
  facts.parts_that_fit = model.parts_that_fit();
  facts.too_large_size = model.too_large_size();
  facts.memory_limit = model.memory_limit();
  facts.fragments = options_.parts.empty()
                        ? rounds::cut_fragments(model.parameters(), parts_.size(), options_.inner_steps)
                        : options_.parts;
  return facts;
}

// Of the model here: a part's values begin with its own first one.
rounds::Fragment RoundTrainer::own_fragment(const RoundFacts& facts, std::size_t i) const {
  if (options_.parts.empty()) return facts.fragments[i];
  rounds::Fragment part = facts.fragments.at(facts.own_part);
  part.first = 0;
  return part;
}

Expected<void> RoundTrainer::copy_states(RoundModel& model, RoundFacts& facts) {
  facts.states.resize(facts.fragments.size());
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const rounds::Fragment own = own_fragment(facts, i);
    NS_ASSIGN_OR_RETURN(ByteSourcePtr weights, copy_weights(model, own));
    ByteSourcePtr momentum = zero_bytes(weights->size());
    facts.states[own.row] = std::make_shared<const rounds::OuterState>(rounds::OuterState{
        rounds::state_counts(own.count, 0), joined({std::move(weights), std::move(momentum)})});
  }
  return {};
}

Expected<ByteSourcePtr> RoundTrainer::copy_weights(RoundModel& model, const rounds::Fragment& fragment) {
  const std::uint64_t bytes = fragment.count * sizeof(float);
  NS_ASSIGN_OR_RETURN(const std::unique_ptr<SpoolItem> item, spool_->create(bytes));
  const outer::WriteValues write = outer::write_to(*item, 0);
  std::vector<float> slice;
  for (std::uint64_t at = 0; at < fragment.count; at += slice.size()) {
    slice.resize(static_cast<std::size_t>(std::min<std::uint64_t>(slice_values, fragment.count - at)));
    NS_RETURN_IF_ERROR(model.read_weights(fragment.first + at, slice));
    NS_RETURN_IF_ERROR(write(at, slice));
  }
  return item->finish(bytes);
}

void RoundTrainer::detach() {
  model_ = nullptr;
  spare_memory_ = 0;
  std::lock_guard lock(mutex_);
  for (const auto& part : parts_) part->detach();
  facts_.reset();
}

RoundTrainer::FragmentTrainer* RoundTrainer::asked() const {
  for (const auto& part : parts_)
    if (part->asked()) return part.get();
  return nullptr;
}

bool RoundTrainer::may_train() const {
  return std::all_of(parts_.begin(), parts_.end(), [](const auto& part) { return part->may_train(); });
}

bool RoundTrainer::may_assist() const {
  return !options_.parts.empty() &&
         std::all_of(parts_.begin(), parts_.end(), [](const auto& part) { return part->may_assist(); });
}

Expected<RoundTrainer::Turn> RoundTrainer::before_step() {
  if (model_ == nullptr) return Turn::Train;  // a model without rounds
  spare_memory_ = model_->spare_memory();
  const MonotonicTime begin = clock_.monotonic_now();
  bool waited = false;
  Turn turn = Turn::Train;
  while (true) {
    FragmentTrainer* part = nullptr;
    {
      std::unique_lock lock(mutex_);
      if (tell_again_) tell_ready();
      if (asked() == nullptr && !may_train() && !may_assist() && !waited) {
        waited = true;
        changed_.wait_for(lock, options_.longest_rest,
                          [this] { return asked() != nullptr || may_train() || must_change(); });
        rested_ += clock_.monotonic_now() - begin;
      }
      if (must_change()) return Turn::OtherModel;
      part = asked();
      if (part == nullptr) {
        if (!may_train()) {
          if (!may_assist()) return Turn::Rest;
          turn = Turn::Assist;
        }
        turned_ = clock_.monotonic_now();
        break;
      }
    }
    if (const auto served = part->serve(); !served.ok()) {
      if (served.error().code != ErrorCode::Exhausted) return served.error();
      return rest_without_room(served.error());
    }
  }
  if (turn == Turn::Train)
    for (const auto& part : parts_)
      if (const auto ready = part->before_training(); !ready.ok())
        return ready.error().code == ErrorCode::Exhausted ? rest_without_room(ready.error())
                                                          : Expected<Turn>(ready.error());
  no_room_.clear();
  set_schedule();
  return turn;
}

// The request stays, and is tried again: there may be room later.
RoundTrainer::Turn RoundTrainer::rest_without_room(const Error& error) {
  std::string why = error.describe();
  if (why != no_room_) logger_.warning("rounds", "training waits: " + why);
  no_room_ = std::move(why);
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, options_.longest_rest, [this] { return must_change(); });
  rested_ += options_.longest_rest;
  return Turn::Rest;
}

void RoundTrainer::wait_for_request() {
  const MonotonicTime begin = clock_.monotonic_now();
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, options_.longest_rest, [this] { return asked() != nullptr || must_change(); });
  rested_ += clock_.monotonic_now() - begin;
}

void RoundTrainer::note_places() {
  std::vector<RoundPlace> places;
  for (const auto& part : parts_) places.push_back(part->place());
  model_->set_places(std::move(places), since_arrival_);
}

// A fragment whose result is late is behind; the others give the network's progress.
void RoundTrainer::set_schedule() {
  std::uint64_t step = 0;
  for (const auto& part : parts_) step = std::max(step, part->scheduled());
  const double factor = since_arrival_ > 0 ? train::rewarm_factor(since_arrival_) : 1.0;
  model_->set_schedule(step, factor);
  note_places();
}

void RoundTrainer::after_step(std::uint64_t tokens) {
  if (model_ == nullptr) return;
  if (since_arrival_ > 0) ++since_arrival_;
  std::lock_guard lock(mutex_);
  trained_ += clock_.monotonic_now() - turned_;
  bool done = false;
  for (const auto& part : parts_) done = part->after_step(tokens) || done;
  if (done) tell_progress();
}

// A full queue drops the notification: the endpoints also poll.
void RoundTrainer::tell_progress() {
  if (listener_.executor != nullptr) static_cast<void>(listener_.executor->post(listener_.progressed));
}

std::optional<RoundTrainer::Newest> RoundTrainer::newest(std::size_t fragment) const {
  const std::lock_guard lock(mutex_);
  return parts_[fragment]->newest();
}

RoundTrainer::View RoundTrainer::view() const {
  std::lock_guard lock(mutex_);
  rounds::TrainedWork furthest;
  for (const auto& part : parts_)
    if (part->work().steps >= furthest.steps) furthest = part->work();
  return {furthest, rested_, trained_, !may_train(), no_memory_};
}

}  // namespace neuroshard::engine
