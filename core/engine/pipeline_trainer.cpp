#include "core/engine/pipeline_trainer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/check.h"

namespace neuroshard::engine {
namespace {

// A cancelled step ends within this time, when no job runs.
constexpr Duration look_at_token = std::chrono::milliseconds(20);
// Of a node without text of its own for the driver. Then the rounds are asked again whether this node may train.
constexpr Duration longest_assistance = std::chrono::milliseconds(200);
// Without a micro-batch, before the caller looks whether something else is to be done.
constexpr Duration longest_wait = std::chrono::seconds(1);
// Micro-batches of this node's text that wait for the driver: a driver that asks gets one at once.
constexpr std::size_t texts_ahead = 8;

}  // namespace

// ---- the pipeline's executor ----

void PipelineTrainer::listen(Listener listener) {
  std::lock_guard lock(mutex_);
  listener_ = std::move(listener);
  if (part_) tell_ready();
}

// Where its queue is full, the listener hears of the part before a later job.
void PipelineTrainer::tell_ready() {
  tell_again_ = false;
  if (listener_.executor == nullptr) return;
  tell_again_ = !listener_.executor->post([ready = listener_.ready, part = *part_] { ready(part); });
}

std::optional<pipeline::MicroBatchText> PipelineTrainer::next_text() {
  std::lock_guard lock(mutex_);
  if (texts_.empty() || assisting_) return std::nullopt;
  pipeline::MicroBatchText text = std::move(texts_.front());
  texts_.pop_front();
  return text;
}

std::optional<PipelineTrainer::Idle> PipelineTrainer::idle() const {
  std::lock_guard lock(mutex_);
  if (!part_) return std::nullopt;
  const MonotonicTime now = clock_.monotonic_now();
  return Idle{running_ == Jobs::All ? Duration{} : now - trained_, running_ ? Duration{} : now - texted_};
}

// ---- the compute thread ----

void PipelineTrainer::attach(Model model) {
  NS_CHECK(!model_);
  model_.emplace(std::move(model));
  computed_ = spent_ = {};
  text_away_.reset();
  speed_.clear();
  PipelinePart part;
  pipeline::StageLane::Events events;
  events.before_step = model_->before_step;
  events.stepped = [this](const auto& step, std::uint64_t targets, const pipeline::Sums& sums) {
    stepped(step, targets, sums);
  };
  part.lane = std::make_shared<pipeline::StageLane>(model_->stage, model_->range, model_->shape, model_->rule,
                                                    std::move(events));
  for (const compute::SlotId slot : compute::slots_of(model_->shape, model_->range))
    part.lane->set_step(slot, model_->steps_done);
  part.anchor = std::make_shared<AnchorStage>(model_->make_text_stage);
  part.text_lane = std::make_shared<pipeline::TextLane>([anchor = part.anchor] { return anchor->stage(); },
                                                        model_->range, model_->shape);
  part.jobs = std::make_shared<JobQueue>();
  generated_.set_jobs(part.jobs);
  generated_.set_waiting([this] { note(Jobs::Texts, true); }, [this] { note(Jobs::Texts, false); });
  part.range = model_->range;
  part.shape = model_->shape;
  part.batch_tokens = model_->batch_tokens;
  part.sequences = model_->sequences;
  part.most_held = model_->most_held;
  part.text_bytes = model_->text_bytes;
  std::lock_guard lock(mutex_);
  part_ = std::move(part);
  trained_ = texted_ = clock_.monotonic_now();
  tell_ready();
}

void PipelineTrainer::detach() {
  if (!model_) return;
  model_.reset();
  stepped_.reset();
  std::lock_guard lock(mutex_);
  part_->jobs->close();
  part_->anchor->release();
  part_.reset();
  tell_again_ = false;
  texts_.clear();
  if (listener_.executor != nullptr) static_cast<void>(listener_.executor->post(listener_.gone));
}

void PipelineTrainer::set_assisting(bool assisting) {
  std::lock_guard lock(mutex_);
  if (std::exchange(assisting_, assisting) && !assisting && listener_.executor != nullptr)
    static_cast<void>(listener_.executor->post(listener_.text));
}

void PipelineTrainer::note(Jobs ready, bool runs) {
  std::lock_guard lock(mutex_);
  texted_ = clock_.monotonic_now();
  if (ready == Jobs::All) trained_ = texted_;
  running_ = runs ? std::optional(ready) : std::nullopt;
  if (tell_again_) tell_ready();
}

void PipelineTrainer::rest() {
  note(Jobs::Texts, model_.has_value());
  if (!model_) return;
  const std::shared_ptr<JobQueue> jobs = part_->jobs;
  while (jobs->run_text(Duration(0))) {
  }
  note(Jobs::Texts, false);
}

void PipelineTrainer::stepped(const pipeline::StageLane::Stepped& step, std::uint64_t targets,
                              const pipeline::Sums& sums) {
  const auto mean = [](double sum, double over) { return over > 0 ? sum / over : 0; };
  const double passes = static_cast<double>(sums.tokens) * (model_->shape.layers - model_->range.first_layer);
  train::InnerStep done;
  done.loss = mean(sums.loss, static_cast<double>(sums.target_tokens));
  done.balance = mean(sums.balance, passes);
  done.z = mean(sums.z, passes);
  done.gradient_norm = step.gradient_norm;
  done.clipped_slots = step.clipped_slots;
  done.tokens = sums.tokens;
  done.target_tokens = targets;
  done.micro_batch = model_->sequences;
  stepped_ = done;
}

// A source that does not answer holds up no work of others.
Expected<void> PipelineTrainer::read_text(const CancelToken& cancel) {
  if (text_away_ && clock_.monotonic_now() < text_away_->again) return {};
  {
    std::lock_guard lock(mutex_);
    if (texts_.size() >= texts_ahead) return {};
  }
  auto texts = model_->read_text(cancel);
  text_away_.reset();
  if (!texts.ok()) {
    const ErrorCode code = texts.error().code;
    const bool comes = code == ErrorCode::Busy;
    if (!comes && code != ErrorCode::Unavailable && code != ErrorCode::Timeout) return texts.error();
    text_away_ = Away{make_error(comes ? code : ErrorCode::Unavailable, texts.error().describe()),
                      clock_.monotonic_now() + (comes ? text_look : text_retry)};
    return {};
  }
  std::lock_guard lock(mutex_);
  std::move(texts->begin(), texts->end(), std::back_inserter(texts_));
  if (listener_.executor != nullptr) static_cast<void>(listener_.executor->post(listener_.text));
  return {};
}

// No text that was read before is left, either.
bool PipelineTrainer::lacks_text() const {
  std::lock_guard lock(mutex_);
  return text_away_ && texts_.empty();
}

std::optional<JobQueue::Kind> PipelineTrainer::run_job(JobQueue& jobs) {
  note(Jobs::All, true);
  const auto ran = jobs.run_one(look_at_token);
  note(Jobs::All, false);
  return ran;
}

// Until stepped_ has a step.
Expected<void> PipelineTrainer::compute_step(const CancelToken& cancel) {
  const MonotonicTime began = clock_.monotonic_now();
  const std::shared_ptr<JobQueue> jobs = part_->jobs;
  const bool assists = [this] {
    std::lock_guard lock(mutex_);
    return assisting_;
  }();
  MonotonicTime worked = began;
  while (!stepped_) {
    if (cancel.cancelled()) return make_error(ErrorCode::Cancelled, "the step was cancelled");
    note(Jobs::All, false);
    if (!assists) NS_RETURN_IF_ERROR(read_text(cancel));
    const MonotonicTime before = clock_.monotonic_now();
    if (assists && before - began > longest_assistance)
      return make_error(ErrorCode::Timeout, "the others need no step now");
    if (!assists && lacks_text() && before - began > longest_assistance) return text_away_->error;
    if (before - worked > longest_wait)
      return make_error(ErrorCode::Timeout, "no micro-batch has come for a while");
    if (run_job(*jobs) != JobQueue::Kind::Training) continue;  // pieces of texts are none of the step's work
    worked = clock_.monotonic_now();
    computed_ += worked - before;
  }
  return {};
}

Expected<train::InnerStep> PipelineTrainer::step(const CancelToken& cancel) {
  NS_CHECK(model_);
  stepped_.reset();
  const MonotonicTime began = clock_.monotonic_now();
  const auto computed = compute_step(cancel);
  spent_ += clock_.monotonic_now() - began;
  NS_RETURN_IF_ERROR(computed);
  const Duration computing = std::exchange(computed_, {}), spent = std::exchange(spent_, {});
  speed_.add(stepped_->tokens, computing);
  stepped_->seconds_forward_backward = to_seconds(computing);
  stepped_->seconds_held = to_seconds(spent - computing);
  return *std::exchange(stepped_, std::nullopt);
}

}  // namespace neuroshard::engine
