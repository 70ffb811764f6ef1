// What the engine lets the compute thread do, one job at a time, and what follows from each result.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "core/engine/detail/engine_core.h"

namespace neuroshard::engine::detail {
namespace {

constexpr double smoothing = 2.0 / 21.0;  // exponential mean over about 20 steps
constexpr Duration progress_period = std::chrono::milliseconds(100);

node::StepView step_view(const StepReport& report) {
  node::StepView view;
  view.step = report.step;
  view.loss = report.loss;
  view.learning_rate = report.learning_rate;
  view.gradient_norm = report.gradient_norm;
  view.tokens = report.total_tokens;
  view.tokens_per_second = report.tokens_per_second;
  view.balance = report.balance;
  view.micro_batch = report.micro_batch;
  view.data_seconds = report.seconds.data;
  view.compute_seconds = report.seconds.forward_backward + report.seconds.evaluation;
  view.optimizer_seconds = report.seconds.optimizer;
  view.waiting_seconds = report.seconds.checkpoint_stall;
  return view;
}

node::EvaluationView evaluation_view(std::uint64_t step, const Validation& validation) {
  node::EvaluationView view{step, validation.loss, std::nullopt};
  if (validation.bits_per_byte > 0) view.bits_per_byte = validation.bits_per_byte;
  return view;
}

node::ComputeView compute_view(const compute::ModuleInfo& info) {
  return {info.device_name, info.gemm, info.isa, info.precision, info.threads};
}

}  // namespace

bool EngineCore::target_reached() const {
  return run_ && run_->prepared && run_->target_step != 0 && draft_.training.step >= run_->target_step;
}

void EngineCore::advance() {
  if (job_runs_ || ending_) return;
  if (!setting_changes_.empty()) return setting_job();
  if (restore_ && restore_->entry) return restore_job();
  if ((stop_requested_ || target_reached()) && (run_ || session_open_)) return finish_job();
  if (text_is_next()) return text_job();
  // Work on files has been asked to end; it tells when it has.
  if (shutting_down_) return cancellable_.empty() ? end() : void();
  text_had_turn_ = false;
  if (drop_text_model_ && text_model_open_ && writings_.empty()) return drop_text_model_job();
  if (!run_) return;
  if (!may_train()) return pause();
  if (!run_->prepared) return prepare_job();
  if (!saves_.empty()) return save_job();
  step_job();
}

void EngineCore::start_job(Job job) {
  job_runs_ = true;
  const bool posted = compute_->post([this, job = std::move(job)] {
    auto after = job();
    // The core's queue is full only while it is flooded with commands, which it works off: the result must
    // arrive.
    while (!core_->post([this, after] {
      job_runs_ = false;
      after();
      advance();
    })) {
      std::this_thread::yield();
    }
  });
  if (posted) return;
  job_runs_ = false;  // full of queries: tried again with the next event
  resource_timer_ = core_->post_after(progress_period, [this] {
    look_at_resources();
    advance();
  });
}

void EngineCore::prepare_job() {
  cancel_ = CancelSource();
  PrepareOptions options;
  options.text = run_->plan.text_path;
  options.cancel = cancel_.token();
  options.on_progress = [this](const PrepareProgress& progress) { report_progress(progress); };
  text_model_open_ = false;
  // Who asks for steps that are done wants to know how good the model is.
  const std::uint64_t until = run_->plan.steps == 0 ? run_->plan.until_step : 0;
  start_job([this, options, until] {
    text_session_.reset();  // its memory is needed
    std::optional<node::EvaluationView> evaluation;
    auto result = [&]() -> Expected<SessionInfo> {
      NS_ASSIGN_OR_RETURN(
          session_, options_.make_session(*directory_, {services_.files, services_.clock, services_.logger,
                                                        history_, options_.rounds != nullptr,
                                                        options_.data_peers, options_.held_checkpoints}));
      NS_ASSIGN_OR_RETURN(SessionInfo info, session_->prepare(options));
      if (RoundModel* model = session_->round_model(); options_.rounds && model != nullptr)
        NS_RETURN_IF_ERROR(options_.rounds->attach(*model));
      if (until != 0 && info.step >= until) {
        NS_ASSIGN_OR_RETURN(const Validation validation, session_->evaluate(false, options.cancel));
        evaluation = evaluation_view(info.step, validation);
      }
      return info;
    }();
    if (!result.ok()) close_session();
    std::optional<node::DataView> data;
    std::shared_ptr<const data::Tokenizer> tokenizer;
    if (const data::Dataset* dataset = session_ ? session_->dataset() : nullptr) {
      data = describe_data(*dataset);
      tokenizer = std::make_shared<const data::Tokenizer>(dataset->tokenizer());
    }
    return [this, result = std::move(result), data = std::move(data), tokenizer = std::move(tokenizer),
            evaluation] {
      if (data) data_ = *data;
      if (evaluation) draft_.training.last_evaluation = evaluation;
      if (tokenizer) tokenizer_ = tokenizer;
      on_prepared(result);
    };
  });
}

void EngineCore::on_prepared(Expected<SessionInfo> result) {
  // Cancelled by a pause: prepared again when it is over.
  if (!result.ok() && result.error().code == ErrorCode::Cancelled && !stop_requested_) return;
  const node::CommandId command = std::exchange(run_->command, 0);
  if (!result.ok()) {
    keep_finished_plan();
    run_.reset();
    const Error error = std::move(result).error();
    if (command != 0) done(command, error);
    if (error.code != ErrorCode::Cancelled || !stop_requested_) return fail(error);
    stop_requested_ = shutting_down_;
    done_all(stops_, std::nullopt);
    set_state(shutting_down_ ? node::RunState::Stopping : node::RunState::Idle);
    return take_up_finished();
  }
  session_open_ = true;
  run_->prepared = true;
  const node::TrainingPlan& plan = run_->plan;
  run_->target_step = plan.steps != 0 ? result->step + plan.steps : plan.until_step;
  draft_.training.step = result->step;
  draft_.training.target_step = run_->target_step;
  draft_.training.activity.clear();
  draft_.training.activity_share = 0;
  draft_.compute = compute_view(result->compute);
  draft_.checkpoint.newest = result->restored_from;
  // Without a limit of the user, what the machine had free is the limit in force.
  if (result->memory_limit != 0) draft_.resources.memory_limit_bytes = result->memory_limit;
  unsaved_ = false;
  if (!stop_requested_ && may_train()) set_state(node::RunState::Training);
  publish();
  emit(node::Prepared{result->step, result->restored_from, result->train_tokens, result->held_out_tokens,
                      result->vocabulary, result->files_added});
  if (command != 0) done(command);
}

void EngineCore::step_job() {
  cancel_ = CancelSource();
  const std::uint64_t target = run_->target_step;
  start_job([this, target, threads = limits_.threads, token = cancel_.token(),
             undo_over = std::exchange(undo_over_, false)] {
    if (undo_over) static_cast<void>(catalogue().keep_for_undo({}).ok());
    session_->limit_threads(threads);
    auto tried = train_a_step(token);
    if (tried.ok() && !*tried) return std::function<void()>([this] { on_rest(); });
    Expected<StepReport> result =
        tried.ok() ? Expected<StepReport>(std::move(**tried)) : Expected<StepReport>(tried.error());
    // People want to know how good the model is at the end, whatever the interval of evaluations.
    if (result.ok() && result->step == target && !result->validation) {
      if (auto validation = session_->evaluate(false, token); validation.ok())
        result->validation = *validation;
    }
    if (!result.ok()) return std::function<void()>([this, result = std::move(result)] { on_step(result); });
    if (!result->router_load.empty()) {
      std::vector<float> bias(result->router_load.size());
      session_->stage().router_bias(bias.data());
      router_.add(result->router_load, bias);
    }
    return std::function<void()>(
        [this, result = std::move(result), experts = router_.view(), shard = session_->shard_in_use()] {
          experts_ = experts;
          shard_in_use_ = shard;
          on_step(result);
        });
  });
}

Expected<std::optional<StepReport>> EngineCore::train_a_step(const CancelToken& cancel) {
  if (options_.rounds) {
    NS_ASSIGN_OR_RETURN(const RoundTrainer::Turn turn, options_.rounds->before_step());
    if (turn == RoundTrainer::Turn::Rest) return std::optional<StepReport>();
  }
  NS_ASSIGN_OR_RETURN(StepReport report, session_->step(cancel));
  if (options_.rounds) options_.rounds->after_step(report.tokens);
  return std::optional<StepReport>(std::move(report));
}

void EngineCore::close_session() {
  if (options_.rounds) options_.rounds->detach();
  session_.reset();
}

// The rounds have nothing to train at the moment; publish() shows what they wait for.
void EngineCore::on_rest() {
  if (finish_if_round_is_over()) return;
  if (options_.rounds_view) draft_.rounds = options_.rounds_view();
  const std::string activity = draft_.rounds.phase;
  if (draft_.training.activity == activity) return;
  draft_.training.activity = activity;
  draft_.training.activity_share = 0;
  publish();
}

void EngineCore::on_step(Expected<StepReport> result) {
  if (!result.ok()) {
    if (result.error().code == ErrorCode::Cancelled) return;  // stop or pause: advance() goes on from there
    return fail(std::move(result).error());
  }
  const StepReport& report = *result;
  if (options_.rounds) draft_.training.activity.clear();
  unsaved_ = true;
  node::TrainingView& training = draft_.training;
  training.step = report.step;
  training.last_step = step_view(report);
  tokens_seen_ = report.total_tokens;
  forget_undo_when_over();
  training.smoothed_loss = training.smoothed_loss
                               ? *training.smoothed_loss + smoothing * (report.loss - *training.smoothed_loss)
                               : report.loss;
  std::optional<node::EvaluationView> evaluation;
  if (report.validation) {
    evaluation = evaluation_view(report.step, *report.validation);
    training.last_evaluation = evaluation;
    training.best_evaluation_loss =
        std::min(training.best_evaluation_loss.value_or(evaluation->loss), evaluation->loss);
  }
  if (!report.checkpoint_saved.empty()) {
    draft_.checkpoint = {report.checkpoint_saved, services_.clock.wall_now()};
    clear("checkpoint");
  }
  static_cast<void>(finish_if_round_is_over());
  publish();
  emit(node::StepFinished{*training.last_step, evaluation});
  if (!report.checkpoint_saved.empty()) tell_written(report.checkpoint_saved);
  for (const Alert& alert : report.alerts) {
    raise({alert.category,
           alert.level >= LogLevel::Error ? node::Severity::Critical : node::Severity::Warning,
           alert.text,
           {}});
  }
}

void EngineCore::tell_written(const std::string& name) {
  emit(node::CheckpointWritten{name});
  emit(node::CheckpointsChanged{});  // older ones may have gone
}

void EngineCore::save_job() {
  start_job([this] {
    auto result = session_->save();
    return [this, result = std::move(result)] {
      // A pause whose checkpoint failed must not try for ever; the alert says what is wrong.
      unsaved_ = false;
      if (result.ok()) {
        draft_.checkpoint = {*result, services_.clock.wall_now()};
        clear("checkpoint");
        publish();
        tell_written(*result);
        return done_all(saves_, std::nullopt);
      }
      raise({"checkpoint", node::Severity::Warning, result.error().describe(), {}});
      done_all(saves_, result.error());
    };
  });
}

void EngineCore::finish_job() {
  if (draft_.state != node::RunState::Failed) {
    draft_.training.activity = "writing the final checkpoint";
    set_state(node::RunState::Stopping);
  }
  start_job([this] {
    Expected<void> result;
    if (session_) result = session_->finish();
    close_session();
    const auto newest = read_checkpoints({{}, 1});
    std::string name = newest.ok() && !newest->entries.empty() ? newest->entries.front().name : "";
    return [this, result = std::move(result), name = std::move(name)] { on_finished(result, name); };
  });
}

void EngineCore::on_finished(Expected<void> result, const std::string& newest) {
  if (result.ok() && !newest.empty() && newest != draft_.checkpoint.newest) {
    draft_.checkpoint = {newest, services_.clock.wall_now()};
    publish();
    tell_written(newest);
  }
  session_open_ = false;
  stop_requested_ = shutting_down_;
  unsaved_ = false;
  draft_.training.activity.clear();
  if (run_ && run_->command != 0)
    done(run_->command, make_error(ErrorCode::Cancelled, "stopped before training began"));
  keep_finished_plan();
  run_.reset();
  std::optional<Error> error;
  if (!result.ok()) error = std::move(result).error().with_context("final checkpoint");
  done_all(saves_, error);
  if (error) {
    raise({"checkpoint", node::Severity::Critical, error->describe(), {}});
    shutdown_error_ = error;
  }
  if (draft_.state != node::RunState::Failed) {
    if (error) {
      set_state(node::RunState::Failed, error);
    } else if (!shutting_down_) {
      set_state(node::RunState::Idle);
    }
  }
  done_all(stops_, error);
  take_up_finished();
}

void EngineCore::fail(Error error) {
  services_.logger.error("engine", error.describe());
  raise({"training_failed", node::Severity::Critical, error.describe(), {}});
  stop_requested_ = true;  // what was trained so far is saved
  done_all(stops_, error);
  if (!session_open_) stop_requested_ = shutting_down_;
  set_state(node::RunState::Failed, std::move(error));
}

void EngineCore::setting_job() {
  SettingChange change = std::move(setting_changes_.front());
  setting_changes_.erase(setting_changes_.begin());
  start_job([this, change = std::move(change)] {
    auto result = change.reset ? directory_->clear_setting(change.id)
                               : directory_->set_setting(change.id, change.value);
    // What is in force now: after a reset, the profile may have a word.
    const config::SettingValue now = directory_->settings().value(change.id);
    keep_settings_view();
    auto rules = contribute_rules(directory_->settings());
    return [this, change, now, rules = std::move(rules), result = std::move(result)] {
      rules_ = rules;
      // Command 0: part of another command, which it does not fail.
      const auto finish = [&](std::optional<Error> error) {
        if (change.command != 0) return done(change.command, std::move(error));
        if (error) services_.logger.warning("settings", error->describe());
      };
      if (!result.ok()) return finish(result.error());
      if (change.id == config::Setting::MemoryLimit) draft_.resources.memory_limit_bytes = now.number;
      apply_pause();
      emit(
          node::SettingChanged{config::setting_info(change.id).name, config::format_setting(change.id, now)});
      finish(std::nullopt);
    };
  });
}

void EngineCore::end() {
  ending_ = true;
  resource_timer_.reset();
  directory_timer_.reset();
  text_model_timer_.reset();
  snooze_timer_.reset();
  set_state(node::RunState::Stopping);
  done_all(stops_, std::nullopt);
  done_all(shutdowns_, shutdown_error_);
  emit(node::Ended{shutdown_error_});
  ended_.set_value();
}

void EngineCore::report_progress(const PrepareProgress& progress) {
  const MonotonicTime now = services_.clock.monotonic_now();
  const bool last = progress.total != 0 && progress.done >= progress.total;
  if (!last && now - progress_reported_ < progress_period) return;
  progress_reported_ = now;
  // Lost when the queue is full: the next one says more.
  static_cast<void>(core_->post([this, progress] {
    draft_.training.activity = std::string(to_string(progress.phase));
    draft_.training.activity_share =
        progress.total == 0 ? 0 : static_cast<double>(progress.done) / static_cast<double>(progress.total);
    publish();
    emit(node::ActivityProgress{draft_.training.activity, progress.done, progress.total});
  }));
}

}  // namespace neuroshard::engine::detail
