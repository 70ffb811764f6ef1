// A training session that only counts; tests of the engine see its calls through the script.
#pragma once

#include <QtGlobal>
#include <atomic>
#include <memory>

#include "core/engine/training_history.h"
#include "core/engine/training_session.h"

namespace neuroshard::testing {

struct Script {
  std::atomic<std::uint64_t> steps{0};
  std::atomic<std::uint32_t> threads{99};
  std::atomic<int> sessions{0}, saved{0};
  engine::RoundModel* round_model = nullptr;  // of a node that takes part in outer rounds
};

class CountingSession final : public engine::TrainingSession {
 public:
  CountingSession(Script& script, std::shared_ptr<engine::TrainingHistory> history)
      : script_(script), history_(std::move(history)) {
    ++script_.sessions;
  }
  Expected<engine::SessionInfo> prepare(const engine::PrepareOptions&) override {
    info_.step = script_.steps;
    return info_;
  }
  Expected<engine::StepReport> step(const CancelToken& cancel) override {
    if (cancel.cancelled()) return make_error(ErrorCode::Cancelled, "stopped");
    engine::StepReport report;
    report.step = ++script_.steps;
    return report;
  }
  void limit_threads(std::uint32_t threads) override { script_.threads = threads; }
  Expected<engine::Validation> evaluate(bool, const CancelToken&) override { return engine::Validation{}; }
  Expected<std::string> save() override {
    ++script_.saved;
    return std::string("saved");
  }
  Expected<void> finish() override { return {}; }
  std::uint64_t steps_done() const override { return script_.steps; }
  const engine::SessionInfo& info() const override { return info_; }
  compute::Stage& stage() override { qFatal("no stage"); }
  const data::Tokenizer& tokenizer() const override { return tokenizer_; }
  engine::TrainingHistory& history() override { return *history_; }
  engine::RoundModel* round_model() override { return script_.round_model; }

 private:
  Script& script_;
  std::shared_ptr<engine::TrainingHistory> history_;
  engine::SessionInfo info_;
  data::Tokenizer tokenizer_;
};

}  // namespace neuroshard::testing
