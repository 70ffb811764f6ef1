#include "core/engine/session/training_session_impl.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/check.h"
#include "core/engine/session/model_setup.h"
#include "core/train/evaluate.h"

namespace neuroshard::engine {

std::string_view to_string(PrepareProgress::Phase phase) {
  switch (phase) {
    case PrepareProgress::Phase::Scanning: return "Scanning the text";
    case PrepareProgress::Phase::LearningMerges: return "Learning the tokenizer";
    case PrepareProgress::Phase::Encoding: return "Encoding the text";
    case PrepareProgress::Phase::Finishing: return "Writing the shards";
    case PrepareProgress::Phase::FetchingTokenizer: return "Fetching the network's tokenizer";
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
    : parts_(directory, std::move(services)) {}

SessionImpl::~SessionImpl() {
  if (prepared_ && parts_.is_part()) parts_.services.pipeline->detach();
}

Expected<void> SessionImpl::open_history() {
  parts_.history = parts_.services.history;
  if (parts_.history) return {};
  NS_ASSIGN_OR_RETURN(parts_.history,
                      TrainingHistory::open(parts_.services.files, parts_.directory.state_database_path(),
                                            parts_.services.clock));
  return {};
}

Expected<SessionInfo> SessionImpl::prepare(const PrepareOptions& options) {
  NS_CHECK(!prepared_);
  parts_.mode = options.mode;
  ModelSetup setup(parts_, options);
  NS_RETURN_IF_ERROR(setup.run());
  waiting_alerts_ = setup.take_alerts();
  if (parts_.trains()) {
    training_.emplace(parts_);
    training_->limits.set_threads(threads_wanted_);
  }
  prepared_ = true;
  text_model_.emplace(*parts_.stage);
  if (parts_.is_part()) attach_pipeline();
  for (const SessionAlert& alert : waiting_alerts_) {
    parts_.services.logger.write({alert.level, alert.category, alert.text});
    parts_.history->log(alert.level, alert.category, alert.text);
  }
  std::erase_if(waiting_alerts_, [](const SessionAlert& alert) { return alert.level < LogLevel::Warning; });
  if (parts_.trains()) log_start();
  return parts_.info;
}

void SessionImpl::log_start() {
  const SessionInfo& info = parts_.info;
  parts_.history->log(LogLevel::Info, "train",
                      info.restored_from.empty()
                          ? std::string("Training starts with a new model.")
                          : fmt::format("Training continues after step {} from checkpoint {}.", info.step,
                                        info.restored_from));
}

void SessionImpl::limit_threads(std::uint32_t threads) {
  threads_wanted_ = threads;
  if (training_) training_->limits.set_threads(threads);
}

void SessionImpl::attach_pipeline() {
  PipelineTrainer::Model model{*parts_.stage, parts_.info.range, parts_.info.shape};
  model.batch_tokens = parts_.directory.profile().consensus.batch_tokens;
  model.sequences = parts_.info.micro_batch;
  model.most_held = parts_.memory.plan.micro_batch;
  model.steps_done = parts_.state.step;
  model.rule = [this](compute::SlotId, std::uint64_t step) { return step_options(step); };
  model.before_step = [this] { parts_.checkpoints->before_update(); };
  const TextMemory memory = text_memory();
  model.make_text_stage = [this, spec = memory.spec] {
    return compute::make_stage(*parts_.module.module, spec);
  };
  model.text_bytes = memory.texts;
  if (memory.texts == 0)
    parts_.services.logger.warning(
        "memory", fmt::format("There is no memory for texts beside the training: their weights need {} MiB.",
                              (memory.weights >> 20) + 1));
  model.read_text = [this](const CancelToken& cancel) { return read_text(cancel); };
  batches_read_ = parts_.state.step;
  evaluation_.emplace(parts_.services.pipeline->texts());
  parts_.services.pipeline->attach(std::move(model));
}

// Of the weights that generate texts, and of the texts beside them: within what the memory plan leaves, so training keeps
// what it needs.
SessionImpl::TextMemory SessionImpl::text_memory() const {
  compute::StageSpec spec = stage_spec(parts_);
  spec.trainable = false;
  const std::uint64_t weights = compute::estimate_memory(spec, precision_of(parts_.module.info)).total();
  const std::uint64_t spare = training_->rounds.spare_memory();
  return {spec, weights, spare - std::min(weights, spare)};
}

Expected<std::vector<pipeline::MicroBatchText>> SessionImpl::read_text(const CancelToken& cancel) {
  StepReport report;  // its alerts are in the log
  NS_ASSIGN_OR_RETURN(const data::Batch batch, next_batch(batches_read_ + 1, &report, cancel));
  ++batches_read_;
  std::vector<pipeline::MicroBatchText> texts;
  for (std::uint32_t first = 0; first < batch.sequences; first += parts_.info.micro_batch) {
    pipeline::MicroBatchText text;
    text.sequences = std::min(parts_.info.micro_batch, batch.sequences - first);
    const auto from = static_cast<std::ptrdiff_t>(first) * batch.sequence_length,
               to = from + static_cast<std::ptrdiff_t>(text.sequences) * batch.sequence_length;
    text.tokens.assign(batch.tokens.begin() + from, batch.tokens.begin() + to);
    text.targets.assign(batch.targets.begin() + from, batch.targets.begin() + to);
    texts.push_back(std::move(text));
  }
  return texts;
}

compute::Stage& SessionImpl::stage() {
  NS_CHECK(prepared_);
  return *parts_.stage;
}

TextModel& SessionImpl::text_model() {
  NS_CHECK(prepared_);
  if (parts_.is_part()) return parts_.services.pipeline->texts();
  return *text_model_;
}

const data::Tokenizer& SessionImpl::tokenizer() const {
  NS_CHECK(prepared_);
  return parts_.dataset->tokenizer();
}

std::optional<data::ShardId> SessionImpl::shard_in_use() const {
  if (!parts_.loader) return std::nullopt;
  const data::LoaderPosition position = parts_.loader->position();
  if (!position.started) return std::nullopt;
  return position.shard_id;
}

compute::StepOptions SessionImpl::step_options(std::uint64_t step) const {
  const config::ConsensusPart& consensus = parts_.directory.profile().consensus;
  compute::StepOptions options;
  options.learning_rate = training_->rounds.learning_rate(step);
  options.weight_decay = config::from_nano(consensus.weight_decay_nano);
  options.clip = config::from_nano(consensus.clip_nano);
  options.step = step;
  return options;
}

Expected<data::Batch> SessionImpl::next_batch(std::uint64_t step, StepReport* report,
                                              const CancelToken& cancel) {
  const data::LoaderPosition before = parts_.loader->position();
  const MonotonicTime begin = parts_.services.clock.monotonic_now();
  auto next = parts_.loader->next(step, cancel);
  parts_.note_text(next);
  NS_ASSIGN_OR_RETURN(data::Batch batch, std::move(next));
  report->seconds.data = to_seconds(parts_.services.clock.monotonic_now() - begin);
  if (before.started && batch.shard_id != before.shard_id) {
    parts_.tell({LogLevel::Info, "data",
                 fmt::format("Training continues with shard {} ({}).", data::shard_label(batch.shard_id),
                             data::to_string(parts_.loader->last_rotation()))},
                report);
  }
  return batch;
}

// Of a part of the model: its share of the steps that the pipeline makes.
Expected<train::InnerStep> SessionImpl::run_pipeline_step(StepReport* report, const CancelToken& cancel) {
  report->learning_rate = step_options(parts_.state.step + 1).learning_rate;
  auto done = parts_.services.pipeline->step(cancel);
  parts_.text_away =
      !done.ok() && (done.error().code == ErrorCode::Unavailable || done.error().code == ErrorCode::Busy);
  if (done.ok()) parts_.loader->report_loss(static_cast<float>(done->loss));
  return done;
}

// The batch and the inner step; on an error loader and model are as before.
Expected<train::InnerStep> SessionImpl::run_step(StepReport* report, const CancelToken& cancel) {
  if (parts_.is_part()) return run_pipeline_step(report, cancel);
  const std::uint64_t step = parts_.state.step + 1;
  const data::LoaderPosition before = parts_.loader->position();
  NS_ASSIGN_OR_RETURN(const data::Batch batch, next_batch(step, report, cancel));
  const compute::StepOptions options = step_options(step);
  report->learning_rate = options.learning_rate;
  const train::BatchView view{batch.sequences, batch.sequence_length, batch.tokens.data(),
                              batch.targets.data()};
  take_router_load();  // drops the routing of evaluations and generation
  Expected<train::InnerStep> done = parts_.loop->step(view, options, cancel);
  if (!done.ok()) {
    NS_RETURN_IF_ERROR(parts_.loader->restore(before));
    return done;
  }
  parts_.loader->report_loss(static_cast<float>(done->loss));
  return done;
}

Expected<StepReport> SessionImpl::step(const CancelToken& cancel) {
  NS_CHECK(training_);
  parts_.text_away = false;
  StepReport report;
  report.alerts = std::exchange(waiting_alerts_, {});
  training_->limits.follow(&report);
  const auto inner = run_step(&report, cancel);
  if (!inner.ok()) {
    waiting_alerts_ = std::move(report.alerts);  // they belong to the next report
    return inner.error();
  }
  count(*inner);
  fill_report(*inner, &report);
  if (inner->retries > 0) {
    parts_.tell(
        {LogLevel::Warning, "memory",
         fmt::format("Memory ran out; training continues with {} sequences at a time.", inner->micro_batch)},
        &report);
  }
  evaluate_if_due(&report, cancel);
  training_->limits.watch(&report);
  // The history before the checkpoint: a run that continues from there has no gap.
  parts_.history->add(report);
  training_->checkpoints.after_step(&report);
  return report;
}

void SessionImpl::count(const train::InnerStep& inner) {
  ++parts_.state.step;
  parts_.state.tokens_seen += inner.target_tokens;
  parts_.state.training_loss = inner.loss;
  if (parts_.state.since_arrival > 0) ++parts_.state.since_arrival;
  for (RoundPlace& place : parts_.state.places) {
    if (place.round == 0) continue;
    ++place.steps;
    place.tokens += inner.target_tokens;
  }
}

void SessionImpl::fill_report(const train::InnerStep& inner, StepReport* report) {
  report->step = parts_.state.step;
  report->loss = inner.loss;
  report->tokens = inner.target_tokens;
  report->total_tokens = parts_.state.tokens_seen;
  report->gradient_norm = inner.gradient_norm;
  report->balance = inner.balance;
  report->z = inner.z;
  report->clipped_slots = inner.clipped_slots;
  report->micro_batch = inner.micro_batch;
  report->router_load = take_router_load();
  report->seconds.forward_backward = inner.seconds_forward_backward;
  report->seconds.optimizer = inner.seconds_optimizer;
  report->seconds.checkpoint_stall = inner.seconds_held;
  const StepSeconds& s = report->seconds;
  const double seconds = s.data + s.forward_backward + s.optimizer;
  report->tokens_per_second = seconds > 0 ? static_cast<double>(report->tokens) / seconds : 0;
}

bool SessionImpl::is_evaluation_step() const {
  const std::uint64_t interval = parts_.directory.settings().number(config::Setting::EvalIntervalSteps);
  return parts_.held_out && interval != 0 && parts_.state.step % interval == 0;
}

// Success: the part of the held-out text that is evaluated is here. Never waits for the network.
Expected<void> SessionImpl::fetch_held_out() {
  if (!parts_.held_out || !parts_.held_out_fetch) return {};
  return parts_.held_out_fetch->get(*parts_.held_out);
}

// False: an evaluation that is due is left out. The next one that is due tries again.
bool SessionImpl::has_held_out_text(StepReport* report) {
  const auto here = fetch_held_out();
  if (!here.ok() && here.error().code != ErrorCode::Busy) report_validation(here.error(), report);
  return here.ok();
}

void SessionImpl::evaluate_if_due(StepReport* report, const CancelToken& cancel) {
  if (evaluation_) return evaluate_beside_training(report, cancel);
  if (!is_evaluation_step() || !has_held_out_text(report)) return;
  const MonotonicTime begin = parts_.services.clock.monotonic_now();
  auto validation = measure(false, cancel);
  report->seconds.evaluation = to_seconds(parts_.services.clock.monotonic_now() - begin);
  report_validation(std::move(validation), report);
}

// Of a part: the loss comes some steps later.
void SessionImpl::evaluate_beside_training(StepReport* report, const CancelToken& cancel) {
  if (const auto result = evaluation_->take())
    report_validation(result->ok() ? Expected<Validation>(validation_of(**result, false)) : result->error(),
                      report);
  if (!is_evaluation_step() || !evaluation_->is_due() || !has_held_out_text(report)) return;
  auto text = held_out_text(cancel);
  if (!text.ok()) return report_validation(text.error(), report);
  evaluation_->begin(std::move(*text));
}

// In pieces of about as many tokens as those of a text that is written.
Expected<PartEvaluation::Text> SessionImpl::held_out_text(const CancelToken& cancel) const {
  constexpr std::size_t piece_tokens = 256;
  const std::size_t length = parts_.held_out->sequence();
  const std::size_t sequences = std::max<std::size_t>(1, piece_tokens / length);
  PartEvaluation::Text text;
  text.length = static_cast<std::uint32_t>(length);
  for (std::size_t at = 0; at < parts_.held_out->windows(); at += sequences) {
    NS_ASSIGN_OR_RETURN(data::HeldOut::Part part, parts_.held_out->part(at, sequences, cancel));
    text.pieces.push_back(
        {part.batch.sequences, std::move(part.batch.tokens), std::move(part.batch.targets)});
    text.bytes += part.target_bytes;
  }
  return text;
}

// The step itself is done: an evaluation that fails is reported, once for each reason, and does not fail the training.
void SessionImpl::report_validation(Expected<Validation> validation, StepReport* report) {
  if (validation.ok()) {
    not_measured_.clear();
    report->validation = std::move(*validation);
    return;
  }
  const Error& error = validation.error();
  if (error.code == ErrorCode::Cancelled && !evaluation_) return;
  if (std::exchange(not_measured_, error.message) == error.message) return;
  parts_.tell({evaluation_ ? LogLevel::Info : LogLevel::Warning, "train",
               "The held-out loss could not be measured: " + error.message},
              report);
}

Expected<Validation> SessionImpl::evaluate(bool complete, const CancelToken& cancel) {
  NS_CHECK(training_);
  // Other nodes wait for the thread in a network.
  const bool in_network = parts_.directory.profile().consensus.inner_steps > 0;
  if (in_network) NS_RETURN_IF_ERROR(fetch_held_out());
  auto validation = measure(complete, cancel);
  // A shard that was damaged on the disk is removed by now: it can be fetched again.
  if (!validation.ok() && validation.error().code == ErrorCode::Unavailable) {
    if (in_network)
      NS_RETURN_IF_ERROR(fetch_held_out());
    else
      validation = measure(complete, cancel);
  }
  if (validation.ok()) parts_.history->add(parts_.state.step, *validation);
  return validation;
}

Expected<Validation> SessionImpl::measure(bool complete, const CancelToken& cancel) {
  if (parts_.is_part())
    return make_error(ErrorCode::Unavailable,
                      "This node holds a part of the model: the held-out loss is measured while it trains.");
  std::optional<data::HeldOut> all;
  if (complete) {
    NS_ASSIGN_OR_RETURN(all, data::HeldOut::create(*parts_.dataset, parts_.info.shape.sequence, 0));
  }
  const data::HeldOut* const held_out = complete ? &*all : parts_.held_out ? &*parts_.held_out : nullptr;
  if (held_out == nullptr) {
    return make_error(ErrorCode::NotFound, "No text is held out: give more text to see a validation loss.");
  }
  const std::uint32_t micro_batch = parts_.loop->micro_batch();
  std::size_t next = 0;
  data::HeldOut::Part part;
  const train::EvaluationSource source = [&]() -> Expected<train::EvaluationPart> {
    if (next >= held_out->windows()) return train::EvaluationPart{};
    auto read = held_out->part(next, micro_batch, cancel);
    parts_.note_text(read);
    NS_ASSIGN_OR_RETURN(part, std::move(read));
    next += micro_batch;
    const data::Batch& batch = part.batch;
    return train::EvaluationPart{
        {batch.sequences, batch.sequence_length, batch.tokens.data(), batch.targets.data()},
        part.target_bytes};
  };
  NS_ASSIGN_OR_RETURN(const train::Evaluation result,
                      train::evaluate(*parts_.stage, source, micro_batch, cancel));
  return validation_of(result, complete);
}

Validation SessionImpl::validation_of(const train::Evaluation& result, bool complete) {
  Validation validation;
  validation.loss = result.loss;
  validation.bits_per_byte = result.bits_per_byte;
  validation.tokens = result.target_tokens;
  validation.complete = complete;
  validation.split = std::string(data::to_string(data::Split::HeldOut));
  parts_.state.held_out_loss = result.loss;
  return validation;
}

std::vector<std::uint64_t> SessionImpl::take_router_load() {
  if (parts_.info.shape.experts <= 1) return {};
  std::vector<std::uint64_t> load(std::size_t{parts_.info.shape.layers} * parts_.info.shape.experts);
  parts_.stage->router_load(
      load.data() + std::size_t{parts_.info.range.first_layer} * parts_.info.shape.experts, true);
  return load;
}

Expected<std::string> SessionImpl::save() {
  NS_CHECK(training_);
  return training_->checkpoints.save();
}

Expected<void> SessionImpl::finish() {
  if (!training_) return {};
  return training_->checkpoints.finish();
}

}  // namespace detail
}  // namespace neuroshard::engine
