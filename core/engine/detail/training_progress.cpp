#include "core/engine/detail/training_progress.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/engine/detail/session_host.h"

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

}  // namespace

TrainingProgress::TrainingProgress(const EngineContext& context)
    : context_(context), draft_(context.publisher.draft()) {}

std::function<void(const PrepareProgress&)> TrainingProgress::reporter() {
  return [this, reported = MonotonicTime{}](const PrepareProgress& progress) mutable {
    const MonotonicTime now = context_.services.clock.monotonic_now();
    const bool last = progress.total != 0 && progress.done >= progress.total;
    if (!last && now - reported < progress_period) return;
    reported = now;
    // Lost when the queue is full: the next report has newer numbers.
    static_cast<void>(context_.core.post([this, progress] { show(progress); }));
  };
}

void TrainingProgress::show(const PrepareProgress& progress) {
  draft_.training.activity = std::string(to_string(progress.phase));
  draft_.training.activity_share =
      progress.total == 0 ? 0 : static_cast<double>(progress.done) / static_cast<double>(progress.total);
  context_.publisher.publish();
  context_.publisher.emit(node::ActivityProgress{draft_.training.activity, progress.done, progress.total});
}

void TrainingProgress::record(const StepReport& report) {
  if (context_.options.rounds) draft_.training.activity.clear();
  node::TrainingView& training = draft_.training;
  training.step = report.step;
  training.last_step = step_view(report);
  // A mean would never forget a loss that is no number.
  if (std::isfinite(report.loss)) {
    const double before = training.smoothed_loss.value_or(report.loss);
    training.smoothed_loss = before + smoothing * (report.loss - before);
  }
  if (report.validation) {
    training.last_evaluation = evaluation_view(report.step, *report.validation);
    const double loss = training.last_evaluation->loss;
    if (std::isfinite(loss))
      training.best_evaluation_loss = std::min(training.best_evaluation_loss.value_or(loss), loss);
    context_.publisher.clear("train");  // the loss can be measured again
  }
  if (!report.checkpoint_saved.empty()) {
    draft_.checkpoint = {report.checkpoint_saved, context_.services.clock.wall_now()};
    context_.publisher.clear("checkpoint");
  }
}

void TrainingProgress::announce(const StepReport& report) {
  SnapshotPublisher& publisher = context_.publisher;
  publisher.publish();
  std::optional<node::EvaluationView> evaluation;
  if (report.validation) evaluation = evaluation_view(report.step, *report.validation);
  publisher.emit(node::StepFinished{step_view(report), evaluation});
  if (!report.checkpoint_saved.empty()) publisher.checkpoint_written(report.checkpoint_saved);
  for (const SessionAlert& alert : report.alerts) {
    publisher.raise({alert.category,
                     alert.level >= LogLevel::Error ? node::Severity::Critical : node::Severity::Warning,
                     alert.text,
                     {}});
  }
}

void TrainingProgress::clear_alerts() {
  for (const char* key : {"memory", "cpu_threads", "idle_cpu_threads", "disk_limit", "train"})
    context_.publisher.clear(key);
}

void TrainingProgress::show_rest() {
  context_.publisher.refresh_rounds();
  if (draft_.training.activity == draft_.rounds.phase) return;
  set_activity(draft_.rounds.phase);
  context_.publisher.publish();
}

void TrainingProgress::set_activity(std::string activity) {
  draft_.training.activity = std::move(activity);
  draft_.training.activity_share = 0;
}

}  // namespace neuroshard::engine::detail
