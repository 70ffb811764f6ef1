// Commands and decisions; the jobs are in training_jobs.cpp.
#include "core/engine/detail/training_controller.h"

#include <utility>

namespace neuroshard::engine::detail {

TrainingController::TrainingController(const EngineContext& context, SessionHost& host,
                                       ContributeController& contribute, ModelQueries& model)
    : context_(context),
      host_(host),
      contribute_(contribute),
      model_(model),
      draft_(context.publisher.draft()),
      progress_(context),
      text_wait_(context, progress_) {
  contribute_.set_listener(*this);
}

Expected<node::CommandId> TrainingController::start(const node::TrainingPlan& plan) {
  if (plan.steps != 0 && plan.until_step != 0) {
    return make_error(ErrorCode::InvalidArgument, "give a number of further steps or a last step, not both");
  }
  return context_.commands.accept([this, plan](node::CommandId id) {
    if (run_ || session_open_) {
      return context_.commands.done(
          id, make_error(ErrorCode::Busy, "training is already running; stop it first"));
    }
    begin(plan, id);
  });
}

Expected<node::CommandId> TrainingController::stop() {
  return context_.commands.accept([this](node::CommandId id) {
    if (!run_ && !session_open_) return context_.commands.done(id);
    stops_.push_back(id);
    stop_requested_ = true;
    context_.jobs.interrupt();
    context_.publisher.set_state(node::RunState::Stopping);
  });
}

Expected<node::CommandId> TrainingController::save() {
  return context_.commands.accept([this](node::CommandId id) {
    if (!prepared()) {
      return context_.commands.done(
          id, make_error(ErrorCode::NotFound, "there is nothing to save: no training is running"));
    }
    saves_.push_back(id);
  });
}

void TrainingController::shut_down() {
  stop_requested_ = true;
  context_.jobs.interrupt();
}

bool TrainingController::target_reached() const {
  return prepared() && run_->target_step != 0 && draft_.training.step >= run_->target_step;
}

bool TrainingController::end_if_due() {
  if (!stop_requested_ && !target_reached()) return false;
  if (!run_ && !session_open_) return false;
  end_job();
  return true;
}

// Saves the present state first.
bool TrainingController::pause_if_due() {
  if (!run_ || contribute_.may_train()) return false;
  text_wait_.end();
  if (run_->prepared && (!saves_.empty() || unsaved_)) {
    save_job();
    return true;
  }
  // The command that asked for this training does not wait for the end of the pause.
  if (run_->command != 0) context_.commands.done(std::exchange(run_->command, 0));
  progress_.set_activity({});
  context_.publisher.set_state(node::RunState::Paused);
  return false;
}

bool TrainingController::start_next() {
  if (!run_ || !contribute_.may_train()) return false;
  if (prepared() && !saves_.empty()) {
    save_job();
  } else if (rests_for_text()) {
    return false;
  } else if (!run_->prepared) {
    prepare_job();
  } else {
    step_job();
  }
  return true;
}

void TrainingController::begin(node::TrainingPlan plan, node::CommandId command) {
  finished_plan_.reset();
  stop_requested_ = false;
  may_train_ = contribute_.may_train();
  context_.publisher.clear("training_failed");
  progress_.clear_alerts();
  draft_.training.data_source = plan.text_path;
  draft_.training.activity.clear();
  run_.emplace();
  run_->plan = std::move(plan);
  run_->command = command;
  context_.publisher.set_state(node::RunState::Starting);
}

void TrainingController::fail(Error error) {
  context_.services.logger.error("engine", error.describe());
  context_.publisher.raise({"training_failed", node::Severity::Critical, error.describe(), {}});
  stop_requested_ = true;  // what was trained so far is saved
  context_.commands.done_all(stops_, error);
  if (!session_open_) stop_requested_ = context_.commands.shutting_down();
  context_.publisher.set_state(node::RunState::Failed, std::move(error));
}

// ---- contributing ----

void TrainingController::switched(bool contributing) {
  if (!contribute_.last_round()) return;
  if (!contributing) return end_after_step();
  // Switched on again before the end of the round: the training continues.
  contribute_.set_last_round(std::nullopt);
  finishing_ = draft_.finishing = false;
  context_.commands.done_all(stops_);
}

void TrainingController::pause_changed() {
  const bool may_train = contribute_.may_train();
  const bool begins = std::exchange(may_train_, may_train) && !may_train;
  // A discarded step is computed again later, so the pause begins at once and no work is lost. During the
  // pause the reasons and sensors change often, and the jobs are those of texts.
  if (begins && run_ && !stop_requested_) context_.jobs.interrupt();
  if (may_train && run_ && draft_.state == node::RunState::Paused) {
    context_.publisher.set_state(run_->prepared ? node::RunState::Training : node::RunState::Starting);
  }
  context_.publisher.publish();
  take_up_finished();
}

Expected<node::CommandId> TrainingController::finish() {
  if (contribute_.locked()) return *contribute_.locked();
  return context_.commands.accept([this](node::CommandId id) {
    const bool round = completes_round();
    draft_.contributing = false;
    if (!run_ && !session_open_) {
      contribute_.apply();
      return contribute_.remember(id);
    }
    finishing_ = true;
    draft_.finishing = true;
    stops_.push_back(id);
    if (round) {
      contribute_.set_last_round(context_.options.rounds_view().round);
      static_cast<void>(contribute_.judge());
      context_.publisher.publish();
    } else {
      end_after_step();
    }
    contribute_.remember_off();
  });
}

// The other members expect this node's work in the round. A second finish() ends the training with the
// current step.
bool TrainingController::completes_round() const {
  if (!context_.options.rounds || !context_.options.rounds_view || finishing_ || stop_requested_)
    return false;
  if (!prepared() || !contribute_.may_train()) return false;
  const node::RoundsView rounds = context_.options.rounds_view();
  return rounds.taking_part && rounds.member && rounds.members > 1;
}

void TrainingController::end_after_step() {
  contribute_.set_last_round(std::nullopt);
  stop_requested_ = true;  // the step that runs is completed
  if (!prepared()) context_.jobs.interrupt();
  static_cast<void>(contribute_.judge());
  context_.publisher.publish();
}

bool TrainingController::finish_if_round_is_over() {
  if (!contribute_.last_round()) return false;
  const node::RoundsView rounds = context_.options.rounds_view();
  const bool goes_on = rounds.round <= *contribute_.last_round() && rounds.member && rounds.members > 1;
  if (goes_on && contribute_.may_train()) return false;
  end_after_step();
  return true;
}

// Before run_ is reset.
void TrainingController::keep_finished_plan() {
  draft_.finishing = false;
  if (contribute_.last_round()) {
    contribute_.set_last_round(std::nullopt);
    // The switch counts again. It is off, so nothing starts by itself.
    static_cast<void>(contribute_.judge());
    context_.publisher.publish();
  }
  if (!std::exchange(finishing_, false) || !run_) return;
  finished_plan_ = run_->plan;
  if (run_->prepared && run_->target_step != 0) {
    finished_plan_->steps = 0;
    finished_plan_->until_step = run_->target_step;
  }
}

void TrainingController::take_up_finished() {
  if (!contribute_.may_train() || context_.commands.shutting_down() || run_ || session_open_ ||
      !finished_plan_)
    return;
  begin(*std::exchange(finished_plan_, std::nullopt), 0);
}

// ---- restore ----

// Discards the step: an undo returns to the state before it.
void TrainingController::interrupt_for_restore() {
  if (prepared() && !stop_requested_) context_.jobs.interrupt();
}

void TrainingController::restore_begins() {
  if (!run_) return;
  draft_.training.activity = "restoring a checkpoint";
  context_.publisher.set_state(node::RunState::Starting);
  context_.publisher.publish();
}

// The model is unchanged and continues.
void TrainingController::restore_failed() {
  draft_.training.activity.clear();
  if (prepared() && !stop_requested_) context_.publisher.set_state(node::RunState::Training);
}

void TrainingController::again_from_preparation() {
  text_wait_.end();
  run_->prepared = false;
  run_->plan.text_path.clear();  // it was imported before
  run_->plan.steps = 0;
  run_->plan.until_step = run_->target_step;
}

bool TrainingController::restored(const checkpoint::Entry& entry, std::uint64_t evaluated_at,
                                  node::CommandId command) {
  session_open_ = false;
  unsaved_ = false;
  draft_.training.step = entry.manifest.step;
  draft_.training.last_step.reset();
  draft_.training.smoothed_loss.reset();
  draft_.training.last_evaluation.reset();
  const std::optional<double>& held_out = entry.manifest.losses.held_out;
  if (held_out) draft_.training.last_evaluation = node::EvaluationView{evaluated_at, *held_out, std::nullopt};
  draft_.training.best_evaluation_loss = held_out;
  model_.set_tokens_seen(entry.manifest.tokens_seen);
  draft_.checkpoint = {entry.name, entry.manifest.saved_at};
  if (!run_) return false;
  if (run_->prepared)
    again_from_preparation();
  else
    text_wait_.end();
  if (run_->command != 0) context_.commands.done(run_->command);
  run_->command = command;
  return true;
}

}  // namespace neuroshard::engine::detail
