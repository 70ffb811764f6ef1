// neuroshardd train: trains in the foreground for a number of steps.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "app/node/commands/open_directory.h"
#include "app/node/output/training_view.h"
#include "core/engine/engine.h"
#include "core/runtime/event_queue.h"

namespace neuroshard::app {
namespace {

constexpr Duration poll = std::chrono::milliseconds(50);  // between two looks at Ctrl-C

struct TrainFlags {
  node::TrainingPlan plan;
  std::shared_ptr<SettingFlags> settings = std::make_shared<SettingFlags>();
};

// Shows events until the training ends or a stop is requested. Returns the error that ended it, if any.
std::optional<Error> follow(runtime::EventQueue& events, TrainingView& view, CommandContext& context) {
  while (!context.stop.cancelled() && context.output.writable()) {
    const auto event = events.next(poll);
    if (!event) continue;
    view.show(*event);
    const auto* changed = std::get_if<node::StateChanged>(&*event);
    if (changed == nullptr) continue;
    if (changed->state == node::RunState::Failed) {
      return changed->error.value_or(make_error(ErrorCode::Internal, "training failed; see the log"));
    }
    if (changed->state == node::RunState::Idle) return std::nullopt;
  }
  return make_error(ErrorCode::Cancelled, {});
}

// Shows every event until the final checkpoint is on the disk.
std::optional<Error> shut_down(node::Node& node, runtime::EventQueue& events, TrainingView& view) {
  const auto id = node.request_shutdown();
  if (!id.ok()) return id.error();
  while (true) {
    const auto event = events.next(poll);
    if (!event) continue;
    view.show(*event);
    const auto* done = std::get_if<node::CommandDone>(&*event);
    if (done != nullptr && done->id == *id) return done->error;
  }
}

Expected<void> train(const TrainFlags& flags, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(OpenedDirectory opened, open_data_directory(context, OpenMode::Stay, *flags.settings));
  const std::string path = opened.directory->path();
  if (const std::string notice = config::network_notice(opened.directory->profile()); !notice.empty()) {
    context.output.note(notice);
  }
  engine::EngineOptions options;
  options.version = program_version();
  const auto node = engine::Engine::start(std::move(opened.directory),
                                          {context.files, context.clock, *opened.logger}, std::move(options));
  TrainingView view(*node, context.output, context.clock, /*step_lines=*/true);
  runtime::EventQueue events(*node);
  NS_RETURN_IF_ERROR(node->start_training(flags.plan));
  const std::optional<Error> ended = follow(events, view, context);
  const std::optional<Error> saved = shut_down(*node, events, view);
  view.clear();
  if (const std::uint64_t lost = events.dropped_steps(); lost > 0) {
    context.output.note(fmt::format("{} steps were not shown: standard output was read too slowly", lost));
  }
  if (ended && ended->code != ErrorCode::Cancelled) return *ended;
  if (saved) return *saved;
  if (!ended) {
    view.show_summary(path);
    return {};
  }
  const std::uint64_t last = node->snapshot()->training.step;
  if (view.steps_seen() == 0) {
    return make_error(ErrorCode::Cancelled, fmt::format("stopped before the first step; the prepared data is "
                                                        "kept in {}; run the same command to continue",
                                                        path));
  }
  return make_error(
      ErrorCode::Cancelled,
      fmt::format("stopped after step {}; everything is saved in {}; run the same command to continue", last,
                  path));
}

}  // namespace

void add_train_command(CLI::App& root, CommandContext& context) {
  auto flags = std::make_shared<TrainFlags>();
  CLI::App& command =
      add_command(root, "train", "Train in the foreground; run it again to continue",
                  {"neuroshardd train --text ~/books --steps 1000",
                   "neuroshardd train --text notes.txt --data-dir ./d --profile solo --steps 100 --json",
                   "neuroshardd train --data-dir ./d --until-step 5000 --cpu-threads 2 --memory-limit 2GiB"});
  command
      .add_option("--text", flags->plan.text_path,
                  "file or folder of training text; required only until it is imported")
      ->type_name("PATH");
  auto* steps =
      command.add_option("--steps", flags->plan.steps, "number of steps to train (default: until Ctrl-C)")
          ->type_name("N")
          ->check(CLI::PositiveNumber);
  command
      .add_option(
          "--until-step", flags->plan.until_step,
          "train up to this step of the model; if it is already reached, only evaluate on held-out text")
      ->type_name("N")
      ->check(CLI::PositiveNumber)
      ->excludes(steps);
  add_setting_flags(command, flags->settings);
  set_body(command, context, [flags, &context] { return train(*flags, context); });
}

}  // namespace neuroshard::app
