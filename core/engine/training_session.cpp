#include "core/engine/training_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/base/check.h"
#include "core/engine/detail/training_session_impl.h"
#include "core/engine/training_data.h"
#include "core/platform/process/heap.h"
#include "core/train/evaluate.h"

namespace neuroshard::engine {

std::string_view to_string(PrepareProgress::Phase phase) {
  switch (phase) {
    case PrepareProgress::Phase::Scanning: return "Looking at the text";
    case PrepareProgress::Phase::LearningMerges: return "Learning the tokenizer";
    case PrepareProgress::Phase::Encoding: return "Encoding the text";
    case PrepareProgress::Phase::Finishing: return "Writing the shards";
    case PrepareProgress::Phase::LoadingCompute: return "Loading the compute module";
    case PrepareProgress::Phase::CreatingModel: return "Creating the model";
    case PrepareProgress::Phase::RestoringModel: break;
  }
  return "Reading the checkpoint";
}

Expected<std::unique_ptr<TrainingSession>> TrainingSession::create(config::DataDirectory& directory,
                                                                   TrainingServices services) {
  auto session = std::make_unique<detail::SessionImpl>(directory, services);
  NS_RETURN_IF_ERROR(session->open_history());
  return std::unique_ptr<TrainingSession>(std::move(session));
}

namespace detail {

SessionImpl::SessionImpl(config::DataDirectory& directory, TrainingServices services)
    : directory_(directory), services_(services) {}

SessionImpl::~SessionImpl() = default;

Expected<void> SessionImpl::open_history() {
  history_ = services_.history;
  if (history_) return {};
  NS_ASSIGN_OR_RETURN(
      history_, TrainingHistory::open(services_.files, directory_.state_database_path(), services_.clock));
  return {};
}

compute::Stage& SessionImpl::stage() {
  NS_CHECK(prepared_);
  return *stage_;
}

const data::Tokenizer& SessionImpl::tokenizer() const {
  NS_CHECK(prepared_);
  return dataset_->tokenizer();
}

std::optional<data::ShardId> SessionImpl::shard_in_use() const {
  if (!loader_) return std::nullopt;
  const data::LoaderPosition position = loader_->position();
  if (!position.started) return std::nullopt;
  return position.shard_id;
}

TrainerState SessionImpl::run_state() const {
  TrainerState state = state_;
  state.micro_batch = loop_->micro_batch();
  state.memory_limit = directory_.settings().number(config::Setting::MemoryLimit);
  state.max_micro_batch = directory_.settings().number(config::Setting::MaxMicroBatch);
  state.loader_position = loader_->position().to_json();
  return state;
}

compute::StepOptions SessionImpl::step_options(std::uint64_t step) const {
  const config::ConsensusPart& consensus = directory_.profile().consensus;
  compute::StepOptions options;
  options.learning_rate = train::learning_rate(schedule_, schedule_step_.value_or(step)) * rate_factor_;
  options.weight_decay = config::from_nano(consensus.weight_decay_nano);
  options.clip = config::from_nano(consensus.clip_nano);
  options.step = step;
  return options;
}

// The batch and the inner step; on an error loader and model are as before.
Expected<train::InnerStep> SessionImpl::run_step(StepReport* report, const CancelToken& cancel) {
  const std::uint64_t step = state_.step + 1;
  const data::LoaderPosition before = loader_->position();
  const MonotonicTime begin = services_.clock.monotonic_now();
  NS_ASSIGN_OR_RETURN(const data::Batch batch, loader_->next(step, cancel));
  report->seconds.data = to_seconds(services_.clock.monotonic_now() - begin);
  if (before.started && batch.shard_id != before.shard_id) {
    tell({LogLevel::Info, "data",
          fmt::format("Goes on with shard {} ({}).", batch.shard_id,
                      data::to_string(loader_->last_rotation()))},
         report);
  }
  const compute::StepOptions options = step_options(step);
  report->learning_rate = options.learning_rate;
  const train::BatchView view{batch.sequences, batch.sequence_length, batch.tokens.data(),
                              batch.targets.data()};
  take_router_load();  // forgets what evaluations and generation have routed
  Expected<train::InnerStep> done = loop_->step(view, options, cancel);
  if (!done.ok()) {
    NS_RETURN_IF_ERROR(loader_->restore(before));
    return done;
  }
  loader_->report_loss(static_cast<float>(done->loss));
  return done;
}

Expected<StepReport> SessionImpl::step(const CancelToken& cancel) {
  NS_CHECK(prepared_ && trains());
  StepReport report;
  report.alerts = std::exchange(waiting_alerts_, {});
  follow_limits(&report);
  NS_ASSIGN_OR_RETURN(const train::InnerStep inner, run_step(&report, cancel));
  ++state_.step;
  state_.tokens_seen += inner.target_tokens;
  state_.training_loss = inner.loss;
  for (RoundPlace& place : state_.places) {
    if (place.round == 0) continue;
    ++place.steps;
    place.tokens += inner.target_tokens;
  }

  report.step = state_.step;
  report.loss = inner.loss;
  report.tokens = inner.target_tokens;
  report.total_tokens = state_.tokens_seen;
  report.gradient_norm = inner.gradient_norm;
  report.balance = inner.balance;
  report.z = inner.z;
  report.clipped_slots = inner.clipped_slots;
  report.micro_batch = inner.micro_batch;
  report.router_load = take_router_load();
  report.seconds.forward_backward = inner.seconds_forward_backward;
  report.seconds.optimizer = inner.seconds_optimizer;
  report.seconds.checkpoint_stall = inner.seconds_held;
  if (inner.retries > 0) {
    tell({LogLevel::Warning, "memory",
          fmt::format("Memory ran out; training goes on with {} sequences at a time.", inner.micro_batch)},
         &report);
  }
  const StepSeconds& s = report.seconds;
  const double seconds = s.data + s.forward_backward + s.optimizer;
  report.tokens_per_second = seconds > 0 ? static_cast<double>(report.tokens) / seconds : 0;
  evaluate_if_due(&report, cancel);
  watch_memory(&report);
  // The history before the checkpoint: a run that goes on from there finds no gap.
  history_->add(report);
  save_if_due(&report);
  return report;
}

void SessionImpl::evaluate_if_due(StepReport* report, const CancelToken& cancel) {
  const std::uint64_t interval = directory_.settings().number(config::Setting::EvalIntervalSteps);
  if (!held_out_part_ || interval == 0 || state_.step % interval != 0) return;
  const MonotonicTime begin = services_.clock.monotonic_now();
  auto validation = measure(false, cancel);
  report->seconds.evaluation = to_seconds(services_.clock.monotonic_now() - begin);
  if (validation.ok()) {
    report->validation = std::move(*validation);
  } else if (validation.error().code != ErrorCode::Cancelled) {
    // The step itself is done: that its evaluation failed is news, not a failure of the training.
    tell({LogLevel::Warning, "train",
          "The held-out loss could not be measured: " + validation.error().message},
         report);
  }
}

Expected<Validation> SessionImpl::evaluate(bool complete, const CancelToken& cancel) {
  NS_CHECK(prepared_ && trains());
  NS_ASSIGN_OR_RETURN(const Validation validation, measure(complete, cancel));
  history_->add(state_.step, validation);
  return validation;
}

Expected<Validation> SessionImpl::measure(bool complete, const CancelToken& cancel) {
  std::optional<data::HeldOut> all;
  if (complete) {
    NS_ASSIGN_OR_RETURN(all, data::HeldOut::create(*dataset_, info_.shape.sequence, 0));
  }
  const data::HeldOut* const held_out = complete ? &*all : held_out_part_ ? &*held_out_part_ : nullptr;
  if (held_out == nullptr) {
    return make_error(ErrorCode::NotFound, "No text is held out: give more text to see a validation loss.");
  }
  const std::uint32_t micro_batch = loop_->micro_batch();
  std::size_t next = 0;
  data::HeldOut::Part part;
  const train::EvaluationSource source = [&]() -> Expected<train::EvaluationPart> {
    if (next >= held_out->windows()) return train::EvaluationPart{};
    NS_ASSIGN_OR_RETURN(part, held_out->part(next, micro_batch, cancel));
    next += micro_batch;
    const data::Batch& batch = part.batch;
    return train::EvaluationPart{
        {batch.sequences, batch.sequence_length, batch.tokens.data(), batch.targets.data()},
        part.target_bytes};
  };
  NS_ASSIGN_OR_RETURN(const train::Evaluation result, train::evaluate(*stage_, source, micro_batch, cancel));
  Validation validation;
  validation.loss = result.loss;
  validation.bits_per_byte = result.bits_per_byte;
  validation.tokens = result.target_tokens;
  validation.complete = complete;
  validation.split = std::string(data::to_string(data::Split::HeldOut));
  state_.held_out_loss = result.loss;
  return validation;
}

void SessionImpl::watch_memory(StepReport* report) {
  std::optional<std::string> note;
  const std::uint32_t micro_batch = watch_->check(loop_->micro_batch(), &note);
  loop_->set_micro_batch(micro_batch);
  if (note) tell({LogLevel::Warning, "memory", *note}, report);
}

void SessionImpl::save_if_due(StepReport* report) {
  report->checkpoint_started = std::exchange(saved_after_sync_, false);
  report->seconds.checkpoint_stall += std::exchange(sync_stall_seconds_, 0);
  if (checkpoints_->due(state_)) {
    const MonotonicTime begin = services_.clock.monotonic_now();
    // Not at each step that only asks again: the disk has a checkpoint to write.
    if (!checkpoints_->in_flight()) history_->flush();
    if (checkpoints_->save(run_state())) report->checkpoint_started = true;
    report->seconds.checkpoint_stall += to_seconds(services_.clock.monotonic_now() - begin);
  }
  TrainingCheckpoints::News news = checkpoints_->collect();
  report->checkpoint_saved = std::move(news.saved);
  for (const SessionAlert& alert : news.alerts) tell(alert, report);
}

// Limits that a person changes while training runs hold from the next step on.
void SessionImpl::follow_limits(StepReport* report) {
  const config::Settings& settings = directory_.settings();
  const std::uint64_t threads =
      threads_wanted_ != 0 ? threads_wanted_ : settings.number(config::Setting::CpuThreads);
  if (threads != threads_setting_) {
    threads_setting_ = threads;
    const compute::Status status = module_.module->set_threads(usable_threads(threads));
    if (!status.ok()) tell({LogLevel::Warning, "limits", status.message}, report);
  }
  const auto most = static_cast<std::uint32_t>(settings.number(config::Setting::MaxMicroBatch));
  if (most < loop_->micro_batch()) loop_->set_micro_batch(std::max(1u, most));
  if (const std::uint64_t limit = settings.number(config::Setting::MemoryLimit); limit != memory_setting_) {
    memory_setting_ = limit;
    watch_.emplace(limit);
    if (limit == 0) {
      module_.module->set_memory_limit(0);
      return;
    }
    // What lies outside the tensors stays as it is; the tensors get the rest, and steps that no longer fit
    // are cut into smaller micro-batches.
    const std::uint64_t outside = memory_.plan.limit - memory_.tensor_bytes;
    const std::uint64_t least = module_.module->memory(false).live_bytes;
    module_.module->set_memory_limit(std::max(limit > outside ? limit - outside : 0, least));
    platform::trim_heap();
  }
}

std::vector<std::uint64_t> SessionImpl::take_router_load() {
  if (info_.shape.experts <= 1) return {};
  std::vector<std::uint64_t> load(std::size_t{info_.shape.layers} * info_.shape.experts);
  stage_->router_load(load.data(), true);
  return load;
}

void SessionImpl::tell(const SessionAlert& alert, StepReport* report) {
  services_.logger.write({alert.level, alert.category, alert.text});
  history_->log(alert.level, alert.category, alert.text);
  if (alert.level >= LogLevel::Warning) report->alerts.push_back(alert);
}

Expected<std::string> SessionImpl::save() {
  NS_CHECK(prepared_ && trains());
  history_->flush();
  return checkpoints_->save_now(run_state());
}

Expected<void> SessionImpl::finish() {
  if (!prepared_ || !trains()) return {};
  history_->flush();
  if (!checkpoints_->up_to_date(state_.step)) {
    NS_ASSIGN_OR_RETURN(const std::string name, checkpoints_->save_now(run_state()));
    history_->log(LogLevel::Info, "checkpoint", fmt::format("Saved {} at the end of the run.", name));
  }
  return {};
}

}  // namespace detail
}  // namespace neuroshard::engine
