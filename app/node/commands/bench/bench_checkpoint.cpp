// The cost of a checkpoint for training: the same session of the profile solo with and without saves beside
// its steps. It contains all of a node's training: data, history, settings, pacing, retention and the disk.
#include <fmt/format.h>

#include <algorithm>

#include "app/node/commands/bench/bench_row.h"
#include "core/crypto/entropy.h"
#include "core/engine/training_session.h"

namespace neuroshard::app {
namespace {

using config::Setting;

constexpr std::size_t text_bytes = 2u << 20;
// The steps of the yardstick, and of the contender that saves without a pause between two saves.
constexpr int block_steps = 10;
// The contender gives up a save that takes longer than this many steps.
constexpr int most_steps_of_a_save = 1000;
constexpr std::uint64_t never = 1'000'000;

// The durations of steps in seconds, without evaluation.
struct StepTimes {
  std::vector<double> seconds;

  double median() const { return median_of(seconds); }
  double worst() const { return seconds.empty() ? 0 : *std::max_element(seconds.begin(), seconds.end()); }
  double total() const {
    double sum = 0;
    for (const double value : seconds) sum += value;
    return sum;
  }
};

class SavedTraining {
 public:
  static Expected<std::unique_ptr<SavedTraining>> make(BenchContext& context) {
    std::unique_ptr<SavedTraining> training(new SavedTraining(context));
    NS_RETURN_IF_ERROR(training->open());
    return training;
  }

  // Returns the tokens of steps without a save beside them.
  Expected<double> plain_block() {
    double tokens = 0;
    for (int i = 0; i < block_steps; ++i) NS_RETURN_IF_ERROR(step(plain, &tokens));
    return tokens;
  }

  // Returns the tokens of the step that a save follows and of all steps until the save is on the disk.
  Expected<double> one_save() {
    NS_RETURN_IF_ERROR(set(Setting::CheckpointEverySteps, 1));
    double tokens = 0;
    NS_RETURN_IF_ERROR(step(starting, &tokens));
    NS_RETURN_IF_ERROR(set(Setting::CheckpointEverySteps, never));
    const MonotonicTime begin = context_.clock.monotonic_now();
    NS_RETURN_IF_ERROR(drain(beside, &tokens));
    save_seconds_.push_back(to_seconds(context_.clock.monotonic_now() - begin));
    return tokens;
  }

  // Returns the tokens of steps that each request a save, so that a save is always being written.
  Expected<double> saves_without_pause() {
    NS_RETURN_IF_ERROR(set(Setting::CheckpointEverySteps, 1));
    double tokens = 0;
    for (int i = 0; i < block_steps; ++i) NS_RETURN_IF_ERROR(step(crowded, &tokens));
    NS_RETURN_IF_ERROR(set(Setting::CheckpointEverySteps, never));
    return tokens;
  }

  // Waits until no save is being written, so that it does not disturb the next contender.
  Expected<void> settle() {
    double tokens = 0;
    StepTimes unused;
    return saving_ ? drain(unused, &tokens) : Expected<void>{};
  }

  const engine::SessionInfo& info() const { return session_->info(); }
  double save_seconds() const { return median_of(save_seconds_); }
  double waited_seconds() const { return median_of(waited_seconds_); }
  std::size_t saves() const { return save_seconds_.size(); }

  StepTimes plain, starting, beside, crowded;

 private:
  explicit SavedTraining(BenchContext& context) : context_(context) {}

  Expected<void> open() {
    const std::string text = context_.scratch + "/text.txt";
    NS_RETURN_IF_ERROR(
        storage::write_file_atomic(context_.files, text, as_bytes(generated_prose(text_bytes))));
    config::DataDirectoryOptions options;
    options.path = context_.scratch + "/node";
    options.profile = "solo";
    options.environment = nullptr;
    options.setting_flags = {{Setting::EvalIntervalSteps, "0"},
                             {Setting::CheckpointMinInterval, "0s"},
                             {Setting::CheckpointKeepLast, "2"},
                             {Setting::CheckpointDailyWriteBudget, "0"},
                             {Setting::CpuThreads, std::to_string(context_.threads)},
                             {Setting::Precision, context_.precision}};
    NS_ASSIGN_OR_RETURN(directory_, config::DataDirectory::open(options, {context_.files, entropy_,
                                                                          context_.clock, context_.logger}));
    NS_RETURN_IF_ERROR(set(Setting::CheckpointEverySteps, never));
    NS_ASSIGN_OR_RETURN(session_, engine::TrainingSession::create(
                                      *directory_, {context_.files, context_.clock, context_.logger}));
    engine::PrepareOptions prepare;
    prepare.text = text;
    prepare.cancel = context_.stop;
    NS_RETURN_IF_ERROR(session_->prepare(prepare));
    return {};
  }

  Expected<void> set(Setting setting, std::uint64_t value) {
    return directory_->set_setting(setting, {value, {}});
  }

  Expected<void> step(StepTimes& times, double* tokens) {
    const MonotonicTime begin = context_.clock.monotonic_now();
    NS_ASSIGN_OR_RETURN(const engine::StepReport report, session_->step(context_.stop));
    times.seconds.push_back(to_seconds(context_.clock.monotonic_now() - begin));
    *tokens += static_cast<double>(report.tokens);
    if (saving_) waited_seconds_.back() += report.seconds.checkpoint_stall;
    if (!report.checkpoint_saved.empty()) saving_ = false;
    if (report.checkpoint_started) {
      saving_ = true;
      waited_seconds_.push_back(report.seconds.checkpoint_stall);
    }
    for (const engine::SessionAlert& alert : report.alerts) {
      if (alert.category == "checkpoint") return make_error(ErrorCode::Io, alert.text);
    }
    return {};
  }

  Expected<void> drain(StepTimes& times, double* tokens) {
    for (int i = 0; saving_ && i < most_steps_of_a_save; ++i) NS_RETURN_IF_ERROR(step(times, tokens));
    if (!saving_) return {};
    return make_error(ErrorCode::Timeout, "a checkpoint was not written within a thousand steps");
  }

  BenchContext& context_;
  crypto::SystemEntropy entropy_;
  std::unique_ptr<config::DataDirectory> directory_;
  std::unique_ptr<engine::TrainingSession> session_;
  std::vector<double> save_seconds_;
  std::vector<double> waited_seconds_;  // of the compute thread, by save
  bool saving_ = false;
};

std::string percent(double part, double whole) {
  return whole > 0 ? fmt::format("{:+.1f}%", 100 * (part / whole - 1)) : "unknown";
}

void add_notes(const SavedTraining& training, BenchReport& report) {
  const double plain = training.plain.median();
  const auto count = static_cast<double>(training.beside.seconds.size());
  // Describes the cost of one save beside the variation of the machine in the plain steps.
  const double lost = training.beside.total() - count * plain;
  report.notes = {
      {"step_ms", fmt::format("{:.0f} (worst {:.0f})", 1000 * plain, 1000 * training.plain.worst())},
      {"step_beside_a_save_ms",
       fmt::format("{:.0f} (worst {:.0f})", 1000 * training.beside.median(), 1000 * training.beside.worst())},
      {"longer", percent(training.beside.median(), plain)},
      {"worst_longer_than_worst", percent(training.beside.worst(), training.plain.worst())},
      {"training_waited_ms_a_save", fmt::format("{:.2f}", 1000 * training.waited_seconds())},
      {"waited_of_a_step", fmt::format("{:.2f}%", plain > 0 ? 100 * training.waited_seconds() / plain : 0)},
      {"lost_a_save_in_steps",
       fmt::format("{:.2f}", plain > 0 && training.saves() > 0
                                 ? lost / plain / static_cast<double>(training.saves())
                                 : 0)},
      {"step_beside_saves_without_pause", percent(training.crowded.median(), plain)},
      {"seconds_of_a_save", fmt::format("{:.1f}", training.save_seconds())},
      {"saves", std::to_string(training.saves())},
      {"precision", training.info().compute.precision},
      {"threads", std::to_string(training.info().compute.threads)}};
}

}  // namespace

Expected<BenchReport> bench_checkpoint(BenchContext& context) {
  NS_ASSIGN_OR_RETURN(const auto training, SavedTraining::make(context));
  const auto settle = [&] { return training->settle(); };
  BenchReport report{{"tokens/s", 1}, {"tokens/s", 1}, {}, {{"with a save", true, 0.95, 0.99}}, {}};
  NS_ASSIGN_OR_RETURN(
      report.result,
      run_interleaved(context.clock, {"without saves", [&] { return training->plain_block(); }, settle},
                      {{"with a save", [&] { return training->one_save(); }, settle},
                       {"saving all the time", [&] { return training->saves_without_pause(); }, settle}},
                      context.rounds, context.stop));
  add_notes(*training, report);
  return report;
}

}  // namespace neuroshard::app
