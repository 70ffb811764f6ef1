// The one implementation of TrainingSession; training_prepare.cpp makes it ready, training_session.cpp
// trains.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/executor.h"
#include "core/compute/module.h"
#include "core/data/held_out.h"
#include "core/data/loader.h"
#include "core/engine/training_checkpoints.h"
#include "core/engine/training_history.h"
#include "core/engine/training_memory.h"
#include "core/engine/training_session.h"
#include "core/train/inner_loop.h"
#include "core/train/schedule.h"

namespace neuroshard::engine::detail {

class SessionImpl final : public TrainingSession, private RoundModel {
 public:
  SessionImpl(config::DataDirectory& directory, TrainingServices services);
  ~SessionImpl() override;

  Expected<SessionInfo> prepare(const PrepareOptions& options) override;
  Expected<StepReport> step(const CancelToken& cancel) override;
  void limit_threads(std::uint32_t threads) override { threads_wanted_ = threads; }
  Expected<Validation> evaluate(bool complete, const CancelToken& cancel) override;
  Expected<std::string> save() override;
  Expected<void> finish() override;
  std::uint64_t steps_done() const override { return state_.step; }
  const SessionInfo& info() const override { return info_; }
  compute::Stage& stage() override;
  const data::Tokenizer& tokenizer() const override;
  const data::Dataset* dataset() const override { return dataset_.get(); }
  std::optional<data::ShardId> shard_in_use() const override;
  TrainingHistory& history() override { return *history_; }
  RoundModel* round_model() override { return prepared_ && trains() ? this : nullptr; }

  // Before prepare().
  Expected<void> open_history();

 private:
  // Parts of prepare(), in order.
  Expected<void> prepare_text(const PrepareOptions& options);
  // After the dataset is open.
  TrainingMemoryRequest memory_request() const;
  Expected<void> load_compute(const PrepareOptions& options);
  Expected<void> settle_precision(compute::ModuleOptions options);
  Expected<void> make_model(const PrepareOptions& options);
  Expected<void> restore(const PrepareOptions& options);
  Expected<void> initialise(const PrepareOptions& options);
  Expected<void> take_over(const checkpoint::Manifest& manifest, const std::string& name);
  Expected<void> prepare_training();

  // RoundModel (round_session.cpp).
  std::uint64_t parameters() const override { return info_.parameters; }
  const Hash256& tokenizer_hash() const override { return state_.tokenizer_hash; }
  Expected<void> read_weights(std::uint64_t first, Span<float> target) override;
  Expected<void> write_weights(std::uint64_t first, Span<const float> source) override;
  template <class Part>
  Expected<void> each_slot(std::uint64_t first, std::uint64_t count, const Part& part);
  bool fresh_moments() const override { return state_.step == 0; }
  void set_schedule(std::uint64_t step, double factor) override {
    schedule_step_ = step;
    rate_factor_ = factor;
  }
  void synced() override;
  void set_places(std::vector<RoundPlace> places) override { state_.places = std::move(places); }
  const std::vector<RoundPlace>& places() const override { return state_.places; }

  // Parts of step().
  compute::StepOptions step_options(std::uint64_t step) const;
  Expected<train::InnerStep> run_step(StepReport* report, const CancelToken& cancel);
  Expected<Validation> measure(bool complete, const CancelToken& cancel);
  void evaluate_if_due(StepReport* report, const CancelToken& cancel);
  void save_if_due(StepReport* report);
  void watch_memory(StepReport* report);
  void follow_limits(StepReport* report);
  std::vector<std::uint64_t> take_router_load();

  // To the log and the events; warnings and errors to the report as well.
  void tell(const SessionAlert& alert, StepReport* report);
  TrainerState run_state() const;
  bool trains() const { return mode_ == SessionMode::Train; }

  config::DataDirectory& directory_;
  TrainingServices services_;
  SessionMode mode_ = SessionMode::Train;
  bool prepared_ = false;
  SessionInfo info_;
  TrainerState state_;
  train::Schedule schedule_;
  std::optional<std::uint64_t> schedule_step_;  // the next step's, when rounds decide; else its own number
  double rate_factor_ = 1;
  std::vector<SessionAlert> waiting_alerts_;  // of prepare(), for the first report
  bool saved_after_sync_ = false;             // since the last report
  double sync_stall_seconds_ = 0;

  std::shared_ptr<TrainingHistory> history_;
  std::unique_ptr<data::Dataset> dataset_;
  std::unique_ptr<Executor> fetcher_;  // fetches the next shard while this one trains
  std::unique_ptr<data::Loader> loader_;
  std::optional<data::HeldOut> held_out_part_;

  compute::LoadedModule module_;
  TrainingMemory memory_;
  compute::StagePtr stage_;
  std::optional<train::InnerLoop> loop_;
  std::optional<MemoryWatch> watch_;
  std::uint64_t memory_setting_ = 0;  // the settings that are in force
  std::uint64_t threads_setting_ = 0;
  std::uint32_t threads_wanted_ = 0;                  // by limit_threads(); 0 = by the setting
  std::unique_ptr<TrainingCheckpoints> checkpoints_;  // before stage_ goes: it may be writing from it
};

}  // namespace neuroshard::engine::detail
