#include "core/engine/pipeline_trainer.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace neuroshard::engine {
namespace {

// A cancelled step ends within this time, when no job runs.
constexpr Duration look_at_token = std::chrono::milliseconds(20);
// Then the rounds are asked again whether this node may train.
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

// A listener whose queue is full would stay without the part: its queue has room for thousands of tasks.
void PipelineTrainer::tell_ready() {
  if (listener_.executor == nullptr) return;
  const bool told = listener_.executor->post([ready = listener_.ready, part = *part_] { ready(part); });
  if (!told) part_->jobs->close();
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
  return Idle{now - trained_, now - texted_};
}

// ---- the compute thread ----

void PipelineTrainer::attach(Model model) {
  NS_CHECK(!model_);
  model_.emplace(std::move(model));
  computed_ = {};
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
  generated_.set_waiting([this] { note_texts(); });
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
  texts_.clear();
  if (listener_.executor != nullptr) static_cast<void>(listener_.executor->post(listener_.gone));
}

void PipelineTrainer::set_assisting(bool assisting) {
  std::lock_guard lock(mutex_);
  if (std::exchange(assisting_, assisting) && !assisting && listener_.executor != nullptr)
    static_cast<void>(listener_.executor->post(listener_.text));
}

void PipelineTrainer::note_training() {
  std::lock_guard lock(mutex_);
  trained_ = texted_ = clock_.monotonic_now();
}

void PipelineTrainer::note_texts() {
  std::lock_guard lock(mutex_);
  texted_ = clock_.monotonic_now();
}

void PipelineTrainer::rest() {
  note_texts();
  if (!model_) return;
  const std::shared_ptr<JobQueue> jobs = part_->jobs;
  while (jobs->run_text(Duration(0))) {
  }
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

Expected<void> PipelineTrainer::read_text(const CancelToken& cancel) {
  {
    std::lock_guard lock(mutex_);
    if (texts_.size() >= texts_ahead) return {};
  }
  NS_ASSIGN_OR_RETURN(std::vector<pipeline::MicroBatchText> texts, model_->read_text(cancel));
  std::lock_guard lock(mutex_);
  std::move(texts.begin(), texts.end(), std::back_inserter(texts_));
  if (listener_.executor != nullptr) static_cast<void>(listener_.executor->post(listener_.text));
  return {};
}

Expected<train::InnerStep> PipelineTrainer::step(const CancelToken& cancel) {
  NS_CHECK(model_);
  const MonotonicTime began = clock_.monotonic_now();
  const std::shared_ptr<JobQueue> jobs = part_->jobs;
  stepped_.reset();
  const bool assists = [this] {
    std::lock_guard lock(mutex_);
    return assisting_;
  }();
  Duration computed{};
  MonotonicTime worked = began;
  while (!stepped_) {
    if (cancel.cancelled()) return make_error(ErrorCode::Cancelled, "the step was cancelled");
    note_training();
    const MonotonicTime before = clock_.monotonic_now();
    if (!assists) NS_RETURN_IF_ERROR(read_text(cancel));
    if (assists && before - began > longest_assistance)
      return make_error(ErrorCode::Timeout, "the others need no step now");
    if (before - worked > longest_wait)
      return make_error(ErrorCode::Timeout, "no micro-batch has come for a while");
    if (!jobs->run_one(look_at_token)) continue;
    worked = clock_.monotonic_now();
    computed += worked - before;
    computed_ += worked - before;
  }
  speed_.add(stepped_->tokens, std::exchange(computed_, Duration{}));
  stepped_->seconds_forward_backward = to_seconds(computed);
  stepped_->seconds_held = to_seconds(clock_.monotonic_now() - began - computed);
  return *std::exchange(stepped_, std::nullopt);
}

}  // namespace neuroshard::engine
