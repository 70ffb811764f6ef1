// A training session that only counts; tests of the engine see its calls through the script.
#pragma once

#include <QThread>
#include <atomic>
#include <cmath>
#include <memory>

#include "core/engine/training_history.h"
#include "core/engine/training_session.h"

namespace neuroshard::testing {

struct Script {
  std::atomic<std::uint64_t> steps{0};  // done; survives sessions, as a checkpoint would
  std::atomic<std::uint32_t> threads{99};
  std::atomic<int> sessions{0}, saved{0}, finished{0};
  std::atomic<std::uint64_t> fail_at{0}, infinite_at{0};
  std::atomic<std::uint64_t> alerts_at{0};  // this step raises each alert of a step
  std::atomic<bool> fail_prepare{false}, fail_finish{false};
  std::atomic<ErrorCode> prepare_error{ErrorCode::NotFound};
  std::atomic<int> prepare_away{0}, step_away{0};  // so many calls find the source of the text away
  std::atomic<ErrorCode> step_away_error{ErrorCode::Unavailable};
  std::atomic<bool> hold{false};              // a step lasts until it is cancelled
  std::atomic<bool> hold_prepare{false};      // so does prepare(), or until this is false
  engine::RoundModel* round_model = nullptr;  // of a node that takes part in outer rounds
};

class CountingSession final : public engine::TrainingSession {
 public:
  CountingSession(Script& script, std::shared_ptr<engine::TrainingHistory> history)
      : script_(script), history_(std::move(history)) {
    ++script_.sessions;
  }
  Expected<engine::SessionInfo> prepare(const engine::PrepareOptions& options) override {
    if (script_.hold_prepare) {
      while (script_.hold_prepare && !options.cancel.cancelled()) QThread::yieldCurrentThread();
      if (options.cancel.cancelled()) return make_error(ErrorCode::Cancelled, "stopped");
    }
    if (script_.fail_prepare) return make_error(script_.prepare_error, "no text; give some with --text");
    if (misses_text(script_.prepare_away)) return make_error(ErrorCode::Unavailable, "not reachable");
    options.on_progress({engine::PrepareProgress::Phase::Encoding, 5, 5});
    info_.step = script_.steps;
    info_.compute.threads = 1;
    info_.train_tokens = 1000;
    return info_;
  }
  Expected<engine::StepReport> step(const CancelToken& cancel) override {
    while (script_.hold && !cancel.cancelled()) QThread::yieldCurrentThread();
    if (cancel.cancelled()) return make_error(ErrorCode::Cancelled, "stopped");
    if (misses_text(script_.step_away)) return make_error(script_.step_away_error, "not reachable");
    if (script_.fail_at == script_.steps + 1)
      return make_error(ErrorCode::Corrupt, "the loss is not a number");
    engine::StepReport report;
    report.step = ++script_.steps;
    report.loss = 5.0 / static_cast<double>(report.step);
    if (report.step == script_.infinite_at) report.loss = HUGE_VAL;
    report.total_tokens = 10 * report.step;
    if (report.step == script_.alerts_at) {
      for (const char* category : {"memory", "cpu_threads", "disk_limit", "train"})
        report.alerts.push_back({LogLevel::Warning, category, "something is wrong"});
    }
    return report;
  }
  bool text_is_away() const override { return away_; }
  void limit_threads(std::uint32_t threads) override { script_.threads = threads; }
  Expected<engine::Validation> evaluate(bool, const CancelToken&) override {
    engine::Validation validation;
    validation.loss = 1.5;
    validation.bits_per_byte = 0.7;
    return validation;
  }
  Expected<std::string> save() override {
    ++script_.saved;
    return std::string("saved");
  }
  Expected<void> finish() override {
    ++script_.finished;
    if (script_.fail_finish) return make_error(ErrorCode::Exhausted, "the disk is full");
    return {};
  }
  std::uint64_t steps_done() const override { return script_.steps; }
  const engine::SessionInfo& info() const override { return info_; }
  compute::Stage& stage() override { qFatal("no stage"); }
  engine::TextModel& text_model() override { qFatal("no model"); }
  const data::Tokenizer& tokenizer() const override { return tokenizer_; }
  engine::TrainingHistory& history() override { return *history_; }
  engine::RoundModel* round_model() override { return script_.round_model; }

 private:
  bool misses_text(std::atomic<int>& times) {
    away_ = times > 0;
    if (away_) --times;
    return away_;
  }

  Script& script_;
  bool away_ = false;
  std::shared_ptr<engine::TrainingHistory> history_;
  engine::SessionInfo info_;
  data::Tokenizer tokenizer_;
};

}  // namespace neuroshard::testing
