// The implementation of TrainingSession, composed of its parts: ModelSetup prepares them, SessionLimits
// applies the user's limits, SessionCheckpoints saves, SessionRoundModel serves the outer rounds. The class
// itself trains and evaluates.
//
// Threads: the compute thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/part_evaluation.h"
#include "core/engine/session/session_checkpoints.h"
#include "core/engine/session/session_limits.h"
#include "core/engine/session/session_parts.h"
#include "core/engine/session/session_round_model.h"

namespace neuroshard::engine::detail {

class SessionImpl final : public TrainingSession {
 public:
  SessionImpl(config::DataDirectory& directory, TrainingServices services);
  ~SessionImpl() override;

  Expected<SessionInfo> prepare(const PrepareOptions& options) override;
  Expected<StepReport> step(const CancelToken& cancel) override;
  void limit_threads(std::uint32_t threads) override;
  Expected<Validation> evaluate(bool complete, const CancelToken& cancel) override;
  Expected<std::string> save() override;
  Expected<void> finish() override;
  bool text_is_away() const override { return parts_.text_away; }
  std::uint64_t steps_done() const override { return parts_.state.step; }
  const SessionInfo& info() const override { return parts_.info; }
  compute::Stage& stage() override;
  TextModel& text_model() override;
  const data::Tokenizer& tokenizer() const override;
  const data::Dataset* dataset() const override { return parts_.dataset.get(); }
  std::optional<data::ShardId> shard_in_use() const override;
  TrainingHistory& history() override { return *parts_.history; }
  RoundModel* round_model() override { return training_ ? &training_->rounds : nullptr; }

  // Before prepare().
  Expected<void> open_history();

 private:
  // Parts of a session that trains.
  struct Training {
    explicit Training(SessionParts& parts) : limits(parts), checkpoints(parts), rounds(parts, checkpoints) {}
    SessionLimits limits;
    SessionCheckpoints checkpoints;
    SessionRoundModel rounds;
  };

  void log_start();
  void attach_pipeline();
  struct TextMemory {
    compute::StageSpec spec;
    std::uint64_t weights = 0, texts = 0;
  };
  TextMemory text_memory() const;
  Expected<std::vector<pipeline::MicroBatchText>> read_text(const CancelToken& cancel);

  // Parts of step().
  Expected<data::Batch> next_batch(std::uint64_t step, StepReport* report, const CancelToken& cancel);
  Expected<train::InnerStep> run_pipeline_step(StepReport* report, const CancelToken& cancel);
  Expected<train::InnerStep> run_step(StepReport* report, const CancelToken& cancel);
  compute::StepOptions step_options(std::uint64_t step) const;
  void count(const train::InnerStep& inner);
  void fill_report(const train::InnerStep& inner, StepReport* report);
  std::vector<std::uint64_t> take_router_load();
  bool is_evaluation_step() const;
  Expected<void> fetch_held_out();
  bool has_held_out_text(StepReport* report);
  void evaluate_if_due(StepReport* report, const CancelToken& cancel);
  void evaluate_beside_training(StepReport* report, const CancelToken& cancel);
  Expected<PartEvaluation::Text> held_out_text(const CancelToken& cancel) const;
  void report_validation(Expected<Validation> validation, StepReport* report);
  Expected<Validation> measure(bool complete, const CancelToken& cancel);
  Validation validation_of(const train::Evaluation& result, bool complete);

  SessionParts parts_;
  std::optional<StageTextModel> text_model_;  // of a whole model
  bool prepared_ = false;
  std::uint64_t batches_read_ = 0;            // of a pipeline's text
  std::optional<PartEvaluation> evaluation_;  // of a part
  std::string not_measured_;                  // why there was no held-out loss, last
  std::uint32_t threads_wanted_ = 0;          // by limit_threads(), before prepare()
  std::vector<SessionAlert> waiting_alerts_;  // from prepare() and failed steps, for the next report
  std::optional<Training> training_;          // after prepare() for training
};

}  // namespace neuroshard::engine::detail
