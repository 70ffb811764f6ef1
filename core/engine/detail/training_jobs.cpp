// The training's jobs on the compute thread, and the handling of each result.
#include <utility>

#include "core/engine/detail/training_controller.h"
#include "core/engine/training_data.h"

namespace neuroshard::engine::detail {
namespace {

node::ComputeView compute_view(const compute::ModuleInfo& info) {
  return {info.device_name, info.gemm, info.isa, info.precision, info.threads};
}

}  // namespace

// ---- prepare ----

void TrainingController::prepare_job() {
  PrepareOptions options;
  options.text = run_->plan.text_path;
  options.tokenizer = run_->other.tokenizer;
  options.part = run_->other.part;
  options.on_progress = progress_.reporter();
  session_open_ = false;  // the job closes a model that is open
  // A plan whose steps are all done requests an evaluation.
  const std::uint64_t evaluate_at = run_->plan.steps == 0 ? run_->plan.until_step : 0;
  context_.jobs.start(
      [this, options, evaluate_at](const CancelToken& interrupt) mutable {
        options.cancel = interrupt;
        return host_.open(options, evaluate_at);
      },
      [this](Expected<SessionHost::Ready> ready) { on_prepared(std::move(ready)); });
}

void TrainingController::on_prepared(Expected<SessionHost::Ready> ready) {
  if (ready.ok() && ready->away) {
    if (stop_requested_) return;  // its job is next
    if (run_->command != 0) context_.commands.done(std::exchange(run_->command, 0));
    return text_wait_.begin(*ready->away);
  }
  text_wait_.end();
  if (ready.ok()) {
    if (ready->data) model_.set_data(*ready->data, ready->tokenizer);
    if (ready->evaluation) draft_.training.last_evaluation = ready->evaluation;
  } else if (ready.error().code == ErrorCode::Cancelled && !stop_requested_) {
    return;  // cancelled by a pause: prepared again when it is over
  }
  const node::CommandId command = std::exchange(run_->command, 0);
  if (!ready.ok()) return on_not_prepared(command, ready.error());
  const SessionInfo& info = ready->info;
  session_open_ = true;
  run_->prepared = true;
  run_->other = {};
  run_->target_step = run_->plan.steps != 0 ? info.step + run_->plan.steps : run_->plan.until_step;
  draft_.training.step = info.step;
  draft_.training.target_step = run_->target_step;
  progress_.set_activity({});
  draft_.compute = compute_view(info.compute);
  // The steps follow the rules' limit; the module was loaded with the setting.
  if (const std::uint32_t threads = contribute_.limits().threads; threads != 0)
    draft_.compute.threads = usable_threads(threads);
  draft_.checkpoint = {info.restored_from, ready->restored_at};
  // Without a user's limit, the limit is the memory that the machine had free.
  if (info.memory_limit != 0) draft_.resources.memory_limit_bytes = info.memory_limit;
  unsaved_ = false;
  if (steps()) context_.publisher.set_state(node::RunState::Training);
  context_.publisher.publish();
  context_.publisher.emit(node::Prepared{info.step, info.restored_from, info.train_tokens,
                                         info.held_out_tokens, info.vocabulary, info.files_added});
  if (command != 0) context_.commands.done(command);
}

void TrainingController::on_not_prepared(node::CommandId command, const Error& error) {
  progress_.set_activity({});
  keep_finished_plan();
  run_.reset();
  if (command != 0) context_.commands.done(command, error);
  context_.commands.done_all(saves_, error);  // of a model that was to be made again
  if (error.code != ErrorCode::Cancelled || !stop_requested_) return fail(error);
  const bool shutting_down = context_.commands.shutting_down();
  stop_requested_ = shutting_down;
  context_.commands.done_all(stops_);
  context_.publisher.set_state(shutting_down ? node::RunState::Stopping : node::RunState::Idle);
  take_up_finished();
}

// ---- step ----

void TrainingController::step_job() {
  const bool has_text = !text_wait_.runs();
  context_.jobs.start(
      [this, has_text, target = run_->target_step, threads = contribute_.limits().threads](
          const CancelToken& interrupt) { return host_.step(threads, target, has_text, interrupt); },
      [this, has_text](Expected<SessionHost::Turn> turn) { on_step(std::move(turn), has_text); });
}

// Makes the model again: another part, or with its text under the network's tokenizer. The steps since the last round are of
// no use to anybody.
void TrainingController::take_over(const WantedModel& other) {
  again_from_preparation();
  run_->other = other;
  unsaved_ = false;
  context_.publisher.set_state(node::RunState::Starting);
  context_.publisher.publish();
}

void TrainingController::on_step(Expected<SessionHost::Turn> turn, bool has_text) {
  if (!turn.ok()) {
    // Cancelled by a stop or a pause, whose job is next.
    if (turn.error().code != ErrorCode::Cancelled) fail(turn.error());
    return;
  }
  if (turn->away) {
    if (!stop_requested_) text_wait_.begin(*turn->away);
    return;
  }
  if (has_text) text_wait_.end();
  if (turn->other_model) return take_over(*turn->other_model);
  const std::optional<SessionHost::Step>& step = turn->step;
  if (!step) {  // the rounds have nothing to train at the moment
    if (!finish_if_round_is_over() && has_text) progress_.show_rest();
    return;
  }
  const StepReport& report = step->report;
  model_.set_step(report.total_tokens, step->experts, step->shard);
  unsaved_ = true;
  progress_.record(report);
  if (!has_text) text_wait_.show();
  static_cast<void>(finish_if_round_is_over());
  progress_.announce(report);
}

// ---- save ----

void TrainingController::save_job() {
  context_.jobs.start([this](const CancelToken&) { return host_.save(); },
                      [this](const Expected<std::string>& name) { on_saved(name); });
}

void TrainingController::on_saved(const Expected<std::string>& name) {
  // Also after a failure: a pause must not retry forever. The alert names the error.
  unsaved_ = false;
  if (!name.ok()) {
    context_.publisher.raise({"checkpoint", node::Severity::Warning, name.error().describe(), {}});
    return context_.commands.done_all(saves_, name.error());
  }
  draft_.checkpoint = {*name, context_.services.clock.wall_now()};
  context_.publisher.clear("checkpoint");
  context_.publisher.publish();
  context_.publisher.checkpoint_written(*name);
  context_.commands.done_all(saves_);
}

// ---- end ----

void TrainingController::end_job() {
  if (draft_.state != node::RunState::Failed) {
    draft_.training.activity = "writing the final checkpoint";
    context_.publisher.set_state(node::RunState::Stopping);
  }
  context_.jobs.start(
      [this](const CancelToken&) {
        End end;
        end.result = host_.finish();
        host_.close();
        end.newest = host_.newest_checkpoint();
        return end;
      },
      [this](const End& end) { on_ended(end); });
}

void TrainingController::on_ended(const End& end) {
  if (end.result.ok() && end.newest && end.newest->name != draft_.checkpoint.newest) {
    draft_.checkpoint = {end.newest->name, context_.services.clock.wall_now()};
    context_.publisher.publish();
    context_.publisher.checkpoint_written(end.newest->name);
  }
  // All is on the disk, so an earlier failure no longer matters. Without an open session nothing was saved.
  if (end.result.ok() && session_open_) {
    context_.publisher.clear("checkpoint");
    shutdown_error_.reset();
  }
  session_open_ = false;
  stop_requested_ = context_.commands.shutting_down();
  unsaved_ = false;
  text_wait_.end();
  draft_.training.activity.clear();
  if (run_ && run_->command != 0)
    context_.commands.done(run_->command, make_error(ErrorCode::Cancelled, "stopped before training began"));
  keep_finished_plan();
  run_.reset();
  std::optional<Error> error;
  if (!end.result.ok()) error = Error(end.result.error()).with_context("final checkpoint");
  context_.commands.done_all(saves_, error);
  show_end(error);
  context_.commands.done_all(stops_, error);
  take_up_finished();
}

void TrainingController::show_end(const std::optional<Error>& error) {
  if (error) {
    shutdown_error_ = error;
    context_.publisher.raise({"checkpoint", node::Severity::Critical, error->describe(), {}});
  }
  if (draft_.state == node::RunState::Failed) return;
  if (error) {
    context_.publisher.set_state(node::RunState::Failed, error);
  } else if (!context_.commands.shutting_down()) {
    context_.publisher.set_state(node::RunState::Idle);
  }
}

}  // namespace neuroshard::engine::detail
