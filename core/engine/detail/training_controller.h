// The training that a person requested, from its start to its final checkpoint: prepares the model, runs one
// step after the other, pauses, saves, stops and finishes.
//
//   Starting ── the model is prepared ── Training ⇄ Paused      (the contribute rules)
//                                            └── stop, finish, target, shutdown ── Stopping ── Idle
//
// Threads: start(), stop(), save() and finish() from any thread; everything else on the core executor. The
// work of the jobs runs on the compute thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/engine/detail/contribute_controller.h"
#include "core/engine/detail/model_queries.h"
#include "core/engine/detail/session_host.h"
#include "core/engine/detail/text_wait.h"
#include "core/engine/detail/training_progress.h"

namespace neuroshard::engine::detail {

class TrainingController final : public ContributeListener {
 public:
  // All outlive the controller.
  TrainingController(const EngineContext& context, SessionHost& host, ContributeController& contribute,
                     ModelQueries& model);

  Expected<node::CommandId> start(const node::TrainingPlan& plan);
  Expected<node::CommandId> stop();
  Expected<node::CommandId> save();
  // Completes the current step or round, and switches contributing off.
  Expected<node::CommandId> finish();

  // Sources of jobs (JobScheduler): the end of the training, the checkpoint of a pause, and the next step.
  // Texts come between the last two, as they would hold up the checkpoint for as long as they are written.
  bool end_if_due();
  bool pause_if_due();
  bool start_next();

  // Once, when the node shuts down: the training ends as by stop().
  void shut_down();
  // The error of the final checkpoint.
  const std::optional<Error>& shutdown_error() const { return shutdown_error_; }
  // Ends the stop commands that are still open.
  void end() { context_.commands.done_all(stops_); }

  // For jobs that alternate with the steps.
  bool steps() const { return run_ && contribute_.may_train() && !stop_requested_ && !rests_for_text(); }
  bool prepared() const { return run_ && run_->prepared; }
  // Ends the training once the round that finish() completes is over, and returns true. Call it regularly.
  bool finish_if_round_is_over();

  // A restore takes the place of the next step: before its job, and after it.
  void interrupt_for_restore();
  void restore_begins();
  void restore_failed();
  // True: the training continues from there, and the command is done when its model is prepared. evaluated_at: step of the
  // checkpoint's held-out loss.
  bool restored(const checkpoint::Entry& entry, std::uint64_t evaluated_at, node::CommandId command);

  // ContributeListener.
  void switched(bool contributing) override;
  void pause_changed() override;

 private:
  // One requested training, until its end.
  struct Run {
    node::TrainingPlan plan;
    node::CommandId command = 0;  // done when training begins, is paused or waits for its text; 0 = done
    bool prepared = false;
    std::uint64_t target_step = 0;  // 0 = no end
    WantedModel other;              // by the network, than the one before
  };

  void begin(node::TrainingPlan plan, node::CommandId command);
  void again_from_preparation();
  bool target_reached() const;
  // Until the next try for the text there is nothing to do. Other members may need a model that is here.
  bool rests_for_text() const { return text_wait_.runs() && !(prepared() && context_.options.rounds); }
  void fail(Error error);

  // Jobs and their results.
  void prepare_job();
  void step_job();
  void save_job();
  void end_job();
  void on_prepared(Expected<SessionHost::Ready> ready);
  void on_not_prepared(node::CommandId command, const Error& error);
  void on_step(Expected<SessionHost::Turn> turn, bool has_text);
  void take_over(const WantedModel& other);
  void on_saved(const Expected<std::string>& name);
  struct End {
    Expected<void> result;
    std::optional<checkpoint::Entry> newest;
  };
  void on_ended(const End& end);
  void show_end(const std::optional<Error>& error);

  // finish().
  bool completes_round() const;
  void end_after_step();
  void keep_finished_plan();
  void take_up_finished();

  const EngineContext& context_;
  SessionHost& host_;
  ContributeController& contribute_;
  ModelQueries& model_;
  node::Snapshot& draft_;
  TrainingProgress progress_;
  TextWait text_wait_;

  std::optional<Run> run_;
  bool session_open_ = false;
  bool unsaved_ = false;  // steps since the last save that the core requested
  bool stop_requested_ = false;
  bool may_train_ = true;                            // as of the last pause_changed() or begin()
  bool finishing_ = false;                           // finish() was called
  std::optional<node::TrainingPlan> finished_plan_;  // resumed when contributing is switched on
  std::optional<Error> shutdown_error_;
  CommandIds stops_, saves_;
};

}  // namespace neuroshard::engine::detail
