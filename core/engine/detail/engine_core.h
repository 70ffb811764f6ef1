// The engine's inside; see engine.h for the threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/cancel.h"
#include "core/base/executor.h"
#include "core/engine/engine.h"
#include "core/node/subscribers.h"

namespace neuroshard::engine::detail {

class EngineCore final : public Engine {
 public:
  EngineCore(std::unique_ptr<DataDirectory> directory, EngineServices services, EngineOptions options);
  ~EngineCore() override;

  std::shared_ptr<const node::Snapshot> snapshot() const override;
  std::unique_ptr<node::Subscription> subscribe(node::EventHandler on_event) override;

  Expected<node::CommandId> start_training(const node::TrainingPlan& plan) override;
  Expected<node::CommandId> stop_training() override;
  Expected<node::CommandId> set_contributing(bool on) override;
  Expected<node::CommandId> snooze(std::chrono::seconds duration) override;
  Expected<node::CommandId> finish() override;
  Expected<node::CommandId> save_checkpoint() override;
  Expected<node::CommandId> set_setting(const std::string& name, const std::string& value) override;
  Expected<node::CommandId> request_shutdown() override;

  Expected<void> query_series(const node::SeriesQuery& query, node::Reply<node::Series> reply) override;
  Expected<void> query_logs(const node::LogQuery& query, node::Reply<node::LogPage> reply) override;
  Expected<void> query_checkpoints(const node::CheckpointQuery& query,
                                   node::Reply<node::CheckpointPage> reply) override;
  Expected<void> query_settings(node::Reply<std::vector<node::SettingEntry>> reply) override;

 private:
  // One wish to train, until its end. Core thread.
  struct Run {
    node::TrainingPlan plan;
    node::CommandId command = 0;  // done when training begins or is paused; 0 = done
    bool prepared = false;
    std::uint64_t target_step = 0;  // 0 = no end
  };
  struct SettingChange {
    node::CommandId command = 0;
    Setting id{};
    SettingValue value;
  };
  using Ids = std::vector<node::CommandId>;
  // Runs on the compute thread; what it returns runs on the core thread.
  using Job = std::function<std::function<void()>()>;

  // Any thread: counts the command and posts its effect. Busy or Cancelled when it can't be taken.
  Expected<node::CommandId> accept(std::function<void(node::CommandId)> effect);
  // Any thread: a query for the compute thread, whose answer is posted to the core thread.
  Expected<void> ask(std::function<void()> question);

  // Core thread.
  void advance();  // starts the next job, if there is something to do and nothing runs
  void start_job(Job job);
  void prepare_job();
  void step_job();
  void save_job();
  void finish_job();
  void setting_job();
  void end();
  void on_prepared(Expected<SessionInfo> result);
  void on_step(Expected<StepReport> result);
  void on_finished(Expected<void> result, const std::string& newest);
  void fail(Error error);
  void set_state(node::RunState state, std::optional<Error> error = std::nullopt);
  void emit(const node::Event& event) { subscribers_->emit(event); }
  void done(node::CommandId id, std::optional<Error> error = std::nullopt);
  void done_all(Ids& ids, const std::optional<Error>& error);
  void raise(node::Alert alert);
  void clear(const std::string& key);
  void publish();
  void look_at_resources();
  bool target_reached() const;
  // Contributing (engine_contribute.cpp).
  bool may_train() const { return draft_.contributing && !draft_.snoozed_until; }
  void open_contributing();  // before the threads run
  void remember_contributing(node::CommandId command);
  void tell_pause_reasons();
  void apply_pause();  // after a change of what may_train() looks at
  void pause();        // nothing runs now: saves what there is, then Paused
  void end_snooze_if_due();
  void begin_run(node::TrainingPlan plan, node::CommandId command);
  void keep_finished_plan();  // before run_ goes
  void take_up_finished();

  // Compute thread.
  void report_progress(const PrepareProgress& progress);
  template <class T>
  void reply_on_core(const node::Reply<T>& reply, Expected<T> answer);
  Expected<node::Series> read_series(const node::SeriesQuery& query);
  Expected<node::LogPage> read_logs(const node::LogQuery& query);
  Expected<node::CheckpointPage> read_checkpoints(const node::CheckpointQuery& query);
  // Runs `use` with the history of the session, or with one opened for the occasion.
  template <class T>
  Expected<T> with_history(const std::function<Expected<T>(history::SeriesStore&, history::EventLog&)>& use);

  std::unique_ptr<DataDirectory> directory_;  // changed on the compute thread only
  EngineServices services_;
  EngineOptions options_;
  std::shared_ptr<node::Subscribers> subscribers_ = std::make_shared<node::Subscribers>();

  // Any thread.
  const std::string directory_path_;
  std::promise<void> ended_;
  mutable std::mutex published_mutex_;
  std::shared_ptr<const node::Snapshot> published_;
  std::atomic<std::uint64_t> next_command_{1};
  std::atomic<std::size_t> open_commands_{0};
  std::atomic<bool> refusing_{false};

  // Core thread.
  node::Snapshot draft_;
  std::optional<Run> run_;
  bool job_runs_ = false;
  bool session_open_ = false;
  bool unsaved_ = false;  // steps since the last save that the core asked for
  bool stop_requested_ = false;
  bool shutting_down_ = false;           // nothing new is begun
  bool ending_ = false;                  // the final finish has been done
  CancelSource cancel_;                  // of the job that runs
  std::optional<Error> shutdown_error_;  // of the final checkpoint
  Ids stops_, saves_, shutdowns_;
  std::vector<SettingChange> setting_changes_;
  std::unique_ptr<TimerHandle> resource_timer_, snooze_timer_;
  bool finishing_ = false;                           // finish() was asked for; contributing goes off with it
  std::optional<Error> contribute_locked_;           // a flag or the environment decides; fixed
  std::optional<node::TrainingPlan> finished_plan_;  // what switching contributing on takes up again

  // Compute thread.
  std::unique_ptr<TrainingSession> session_;
  MonotonicTime progress_reported_{};

  // Last, so that they are joined first, compute before core.
  std::unique_ptr<Executor> core_;
  std::unique_ptr<Executor> compute_;
};

}  // namespace neuroshard::engine::detail
