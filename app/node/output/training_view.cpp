#include "app/node/output/training_view.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace neuroshard::app {
namespace {

constexpr Duration line_period = std::chrono::seconds(5);  // between two lines where there is no terminal

std::string short_count(double count) {
  if (count >= 1e9) return fmt::format("{:.2f}G", count / 1e9);
  if (count >= 1e6) return fmt::format("{:.2f}M", count / 1e6);
  if (count >= 1e4) return fmt::format("{:.1f}k", count / 1e3);
  return fmt::format("{:.0f}", count);
}

std::string describe(const node::EvaluationView& evaluation) {
  std::string text = fmt::format("held-out {:.4f}", evaluation.loss);
  if (evaluation.bits_per_byte) text += fmt::format(" ({:.3f} bits per byte)", *evaluation.bits_per_byte);
  return text;
}

void add_evaluation(const node::EvaluationView& evaluation, nlohmann::ordered_json* line) {
  (*line)["val_loss"] = evaluation.loss;
  if (evaluation.bits_per_byte) (*line)["bits_per_byte"] = *evaluation.bits_per_byte;
}

}  // namespace

TrainingView::TrainingView(node::Node& node, Output& output, const Clock& clock, bool step_lines)
    : node_(node), output_(output), clock_(clock), step_lines_(step_lines), progress_(output, clock, {}) {}

void TrainingView::show(const node::Event& event) {
  if (const auto* activity = std::get_if<node::ActivityProgress>(&event)) {
    progress_.set_label(activity->activity);
    progress_.update(activity->done, activity->total);
  } else if (const auto* prepared = std::get_if<node::Prepared>(&event)) {
    show_start(*prepared);
  } else if (const auto* step = std::get_if<node::StepFinished>(&event)) {
    show_step(*step);
  } else if (const auto* alert = std::get_if<node::AlertRaised>(&event)) {
    progress_.clear();
    output_.note("neuroshardd: " + alert->alert.message);
    output_.json_note({{"alert",
                        {{"key", alert->alert.key},
                         {"severity", std::string(to_string(alert->alert.severity))},
                         {"message", alert->alert.message}}}});
  }
}

void TrainingView::show_start(const node::Prepared& prepared) {
  progress_.clear();
  const auto view = node_.snapshot();
  first_step_ = prepared.step;
  const node::ModelView& model = view->model;
  const node::ComputeView& compute = view->compute;
  output_.note(fmt::format(
      "Model    {}: {} parameters, {} per token; {} layers, width {}, {}", view->program.network,
      short_count(static_cast<double>(model.parameters)),
      short_count(static_cast<double>(model.active_parameters)), model.layers, model.hidden,
      model.experts == 1 ? std::string("dense")
                         : fmt::format("{} of {} experts", model.experts_per_token, model.experts)));
  output_.note(fmt::format("Compute  {}; {}; {}; {}; {} thread{}", compute.device, compute.kernels,
                           compute.isa, compute.precision, compute.threads, compute.threads == 1 ? "" : "s"));
  output_.note(fmt::format("Text     {} tokens to train on, {} held out, vocabulary of {}",
                           short_count(static_cast<double>(prepared.train_tokens)),
                           short_count(static_cast<double>(prepared.held_out_tokens)), prepared.vocabulary));
  if (!prepared.restored_from.empty()) {
    output_.note(
        fmt::format("Resume   after step {}, from checkpoint {}", prepared.step, prepared.restored_from));
  }
  output_.json_note({{"start",
                      {{"network", view->program.network},
                       {"parameters", model.parameters},
                       {"active_parameters", model.active_parameters},
                       {"device", compute.device},
                       {"kernels", compute.kernels},
                       {"isa", compute.isa},
                       {"precision", compute.precision},
                       {"threads", compute.threads},
                       {"train_tokens", prepared.train_tokens},
                       {"held_out_tokens", prepared.held_out_tokens},
                       {"vocabulary", prepared.vocabulary},
                       {"step", prepared.step},
                       {"restored_from", prepared.restored_from}}}});
}

void TrainingView::show_step(const node::StepFinished& finished) {
  ++steps_seen_;
  if (!first_loss_) first_loss_ = finished.step.loss;
  if (finished.evaluation) evaluation_ = finished.evaluation;
  if (step_lines_) show_step_line(finished);
  if (output_.json()) return;
  const auto view = node_.snapshot();
  const node::StepView& step = finished.step;
  const std::uint64_t target = view->training.target_step;
  std::string detail =
      fmt::format("loss {:.4f}  {} tokens/s", view->training.smoothed_loss.value_or(step.loss),
                  short_count(step.tokens_per_second));
  if (evaluation_) {
    detail +=
        output_.live() ? fmt::format("  held-out {:.4f}", evaluation_->loss) : "  " + describe(*evaluation_);
  }
  progress_.set_label(target == 0 ? fmt::format("step {}", step.step)
                                  : fmt::format("step {}/{}", step.step, target));
  progress_.update(step.step - first_step_, target > first_step_ ? target - first_step_ : 0, detail);
  if (output_.live()) return;
  const MonotonicTime now = clock_.monotonic_now();
  if (line_at_ && now - *line_at_ < line_period && !finished.evaluation && step.step != target) return;
  line_at_ = now;
  output_.note(fmt::format("step {}{}  {}", step.step,
                           target == 0 ? std::string() : fmt::format("/{}", target), detail));
}

void TrainingView::show_step_line(const node::StepFinished& finished) {
  const node::StepView& step = finished.step;
  nlohmann::ordered_json line = {{"step", step.step}, {"loss", step.loss}};
  if (finished.evaluation) add_evaluation(*finished.evaluation, &line);
  line["tokens"] = step.tokens;
  line["tokens_per_s"] = step.tokens_per_second;
  line["lr"] = step.learning_rate;
  line["grad_norm"] = step.gradient_norm;
  if (step.balance > 0) line["balance"] = step.balance;
  line["micro_batch"] = step.micro_batch;
  output_.json_line(line);
}

void TrainingView::show_summary(const std::string& data_dir) {
  progress_.clear();
  const auto view = node_.snapshot();
  if (steps_seen_ == 0 && view->training.last_evaluation) {
    evaluation_ = view->training.last_evaluation;
    output_.line(fmt::format("Step {}, already trained: {}", view->training.step, describe(*evaluation_)));
    if (step_lines_) {
      nlohmann::ordered_json line = {{"step", view->training.step}};
      add_evaluation(*evaluation_, &line);
      output_.json_line(line);
    }
    return;
  }
  if (!view->training.last_step || !first_loss_) return;
  output_.line(fmt::format("Step {}: loss {:.4f} → {:.4f}{}", view->training.step, *first_loss_,
                           view->training.smoothed_loss.value_or(view->training.last_step->loss),
                           evaluation_ ? ", " + describe(*evaluation_) : std::string()));
  output_.line(fmt::format("Saved in {}. Generate text: neuroshardd generate --data-dir {} --prompt \"…\"",
                           data_dir, data_dir));
}

}  // namespace neuroshard::app
