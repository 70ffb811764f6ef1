// The engine's inside; see engine.h for the threads.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/cancel.h"
#include "core/base/executor.h"
#include "core/checkpoint/catalogue.h"
#include "core/checkpoint/loader.h"
#include "core/data/dataset.h"
#include "core/engine/contribute_state.h"
#include "core/engine/engine.h"
#include "core/engine/generator.h"
#include "core/engine/router_load.h"
#include "core/engine/utf8_stream.h"
#include "core/node/subscribers.h"

namespace neuroshard::engine::detail {

class EngineCore final : public Engine {
 public:
  EngineCore(std::unique_ptr<config::DataDirectory> directory, EngineServices services,
             EngineOptions options);
  ~EngineCore() override;

  std::shared_ptr<const node::Snapshot> snapshot() const override;
  std::unique_ptr<node::Subscription> subscribe(node::EventHandler on_event) override;

  Expected<node::CommandId> start_training(const node::TrainingPlan& plan) override;
  Expected<node::CommandId> stop_training() override;
  Expected<node::CommandId> set_contributing(bool on) override;
  Expected<node::CommandId> snooze(std::chrono::seconds duration) override;
  Expected<node::CommandId> finish() override;
  Expected<node::CommandId> override_rules(std::chrono::seconds duration) override;
  Expected<void> report_session(const node::SessionSensors& sensors) override;
  Expected<node::CommandId> save_checkpoint() override;
  Expected<node::CommandId> restore_checkpoint(const std::string& name) override;
  Expected<node::CommandId> undo_restore() override;
  Expected<node::CommandId> verify_checkpoint(const std::string& name) override;
  Expected<node::CommandId> compare_checkpoints(const std::string& first, const std::string& second) override;
  Expected<node::CommandId> pin_checkpoint(const std::string& name, bool pinned) override;
  Expected<node::CommandId> delete_checkpoint(const std::string& name) override;
  Expected<node::CommandId> prune_checkpoints(const node::PrunePolicy& policy) override;
  Expected<node::CommandId> export_checkpoint(const std::string& name, const std::string& format,
                                              const std::string& path) override;
  Expected<node::CommandId> import_checkpoint(const std::string& path) override;
  Expected<node::CommandId> generate(const node::GenerateRequest& request,
                                     std::function<void(std::string)> on_text) override;
  Expected<void> cancel(node::CommandId id) override;
  Expected<node::CommandId> set_setting(const std::string& name, const std::string& value) override;
  Expected<node::CommandId> request_shutdown() override;

  Expected<void> query_series(const node::SeriesQuery& query, node::Reply<node::Series> reply) override;
  Expected<void> query_logs(const node::LogQuery& query, node::Reply<node::LogPage> reply) override;
  Expected<void> query_checkpoints(const node::CheckpointQuery& query,
                                   node::Reply<node::CheckpointPage> reply) override;
  Expected<void> query_prune(const node::PrunePolicy& policy, node::Reply<node::PrunePreview> reply) override;
  Expected<void> query_slots(node::Reply<std::vector<node::SlotEntry>> reply) override;
  Expected<void> query_experts(node::Reply<std::vector<node::ExpertLoad>> reply) override;
  Expected<void> query_data(node::Reply<node::DataView> reply) override;
  Expected<void> query_network(node::Reply<node::NetworkView> reply) override;
  Expected<void> query_rounds(node::Reply<node::RoundsReport> reply) override;
  Expected<void> test_reachability() override;
  Expected<void> query_tokens(const std::string& text,
                              node::Reply<std::vector<node::TokenPiece>> reply) override;
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
    config::Setting id{};
    config::SettingValue value;
    bool reset = false;  // to what holds without the user's choice
  };
  // A restore, from its command to the model that goes on. Core thread.
  struct Restore {
    node::CommandId command = 0;
    bool undo = false;
    std::optional<checkpoint::Entry> entry;  // once it is verified
  };
  // A text that somebody asked for. The writer belongs to the compute thread.
  struct Writing {
    Writing(node::CommandId id, GenerateOptions options)
        : command(id), cancel(options.cancel), writer(std::move(options)) {}
    const node::CommandId command;
    const CancelToken cancel;
    TextWriter writer;
    std::uint64_t step = 0;        // of the model that wrote last
    std::function<void()> finish;  // shows what waits for the rest of a character
  };
  // What a command that works on files may use; see accept_file_command().
  struct FileJob {
    CancelToken cancel;
    checkpoint::Progress progress;
  };
  using FileWork = std::function<Expected<node::CommandResult>(const FileJob&)>;
  using Ids = std::vector<node::CommandId>;
  // Runs on the compute thread; what it returns runs on the core thread.
  using Job = std::function<std::function<void()>()>;

  // Any thread: counts the command and posts its effect. Busy or Cancelled when it can't be taken.
  Expected<node::CommandId> accept(std::function<void(node::CommandId)> effect);
  // Any thread: a query that needs the disk but no session: answered from the reading thread.
  Expected<void> ask_reader(std::function<void()> question);
  // Any thread: a query of what the core thread knows.
  Expected<void> ask_core(std::function<void()> question);
  // Any thread: a command whose work is done on the files thread, beside the training, with progress and
  // cancel().
  Expected<node::CommandId> accept_file_command(std::string activity, FileWork work);

  // Core thread.
  void advance();  // starts the next job, if there is something to do and nothing runs
  void start_job(Job job);
  void prepare_job();
  void step_job();
  void save_job();
  void finish_job();
  void setting_job();
  void restore_job();
  void text_job();
  void drop_text_model_job();
  void end();
  // Runs work on the files thread; `then` gets its outcome on the core thread. The command is cancellable
  // meanwhile.
  void start_file_work(node::CommandId id, const std::string& activity, FileWork work,
                       std::function<void(Expected<node::CommandResult>)> then);
  checkpoint::Progress progress_teller(node::CommandId id,
                                       const std::string& activity);  // files, compute thread
  void begin_restore(node::CommandId id, const std::string& name, bool undo);
  void on_restored(Expected<std::uint64_t> step, const checkpoint::Catalogue::Undo& undo);
  void forget_undo_when_over();
  void open_undo();  // before the threads run
  void on_text(const std::shared_ptr<Writing>& writing, Expected<bool> complete);
  bool text_is_next() const;
  void look_at_directory();
  void look_at_processor();
  void complete_data(node::DataView* view) const;  // with what the core thread knows
  void on_prepared(Expected<SessionInfo> result);
  void on_step(Expected<StepReport> result);
  void on_rest();
  void on_finished(Expected<void> result, const std::string& newest);
  void tell_written(const std::string& name);
  void fail(Error error);
  void set_state(node::RunState state, std::optional<Error> error = std::nullopt);
  void emit(const node::Event& event) { subscribers_->emit(event); }
  void done(node::CommandId id, std::optional<Error> error = std::nullopt, node::CommandResult result = {});
  void done_all(Ids& ids, const std::optional<Error>& error);
  void raise(node::Alert alert);
  void clear(const std::string& key);
  void publish();
  void look_at_rounds();
  void look_at_resources();
  bool target_reached() const;
  // Contributing (engine_contribute.cpp).
  bool may_train() const { return draft_.pause_reasons.empty(); }
  void open_contributing();  // before the threads run
  void remember_contributing(node::CommandId command);
  void apply_pause();  // after a change of what the rules look at: decides anew
  bool judge();        // true when something that is shown has changed
  void read_sensors_if_due();
  void keep_contribute_state();
  void pause();  // nothing runs now: saves what there is, then Paused
  void end_snooze_if_due();
  void look_at_rules();  // with every look at the resources, and when a sensor reports
  void begin_run(node::TrainingPlan plan, node::CommandId command);
  bool completes_round() const;  // finish() does, because others count on this node's work
  void end_finishing();          // after the step that runs
  bool finish_if_round_is_over();
  void keep_finished_plan();  // before run_ goes
  void take_up_finished();

  // Compute thread.
  void report_progress(const PrepareProgress& progress);
  template <class T>
  void reply_on_core(const node::Reply<T>& reply, Expected<T> answer) {
    // A full core queue drops the answer: the asker's page stays as it was.
    static_cast<void>(core_->post([reply, answer = std::move(answer)] { reply(answer); }));
  }
  Expected<std::optional<StepReport>> train_a_step(const CancelToken& cancel);  // nothing: the rounds rest
  void close_session();
  Expected<bool> write_text(Writing& writing, const CancelToken& interrupt, Duration turn);
  void keep_settings_view();  // after a change of the settings; before the threads run, too
  // Any thread.
  Expected<node::Series> read_series(const node::SeriesQuery& query);
  Expected<node::LogPage> read_logs(const node::LogQuery& query);
  Expected<node::CheckpointPage> read_checkpoints(const node::CheckpointQuery& query);
  checkpoint::Catalogue catalogue() const;
  node::DataView describe_data(const data::Dataset& dataset) const;
  // Of this directory. NotFound: it has none yet.
  Expected<std::unique_ptr<data::Dataset>> open_own_text() const;
  void tell_checkpoints_changed();

  std::unique_ptr<config::DataDirectory> directory_;  // changed on the compute thread only
  EngineServices services_;
  EngineOptions options_;
  std::shared_ptr<node::Subscribers> subscribers_ = std::make_shared<node::Subscribers>();

  // Any thread.
  const std::string directory_path_;
  const Hash256 network_id_;
  const std::shared_ptr<TrainingHistory> history_;  // of every session in turn
  mutable std::mutex settings_mutex_;
  std::vector<node::SettingEntry> settings_view_;
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
  std::optional<std::uint64_t> finish_after_;        // a round; with the next one's certificate finish() ends
  std::optional<Error> contribute_locked_;           // a flag or the environment decides; fixed
  std::optional<node::TrainingPlan> finished_plan_;  // what switching contributing on takes up again
  contribute::Rules rules_;
  contribute::Readings readings_;
  contribute::RuleStates rule_states_;
  contribute::Limits limits_;
  ContributeState kept_;  // as it is on the disk
  std::optional<MonotonicTime> sensors_asked_;
  std::atomic<bool> sensors_read_{false};  // they are being read

  std::map<node::CommandId, CancelSource> cancellable_;  // long commands under way, texts included
  std::optional<Restore> restore_;
  checkpoint::Catalogue::Undo undo_;               // when it is over
  bool undo_over_ = false;                         // its checkpoint may go
  std::deque<std::shared_ptr<Writing>> writings_;  // in turn
  bool text_had_turn_ = false;                     // training is next
  bool text_model_open_ = false;                   // text_session_ is there
  bool drop_text_model_ = false;                   // nobody asked for a text lately
  std::unique_ptr<TimerHandle> text_model_timer_, directory_timer_;
  std::vector<node::ExpertLoad> experts_;
  node::DataView data_;  // of the session's text; shard_count 0: no session was there yet
  std::shared_ptr<const data::Tokenizer> tokenizer_;
  std::optional<std::uint64_t> tokens_seen_;  // by the model, as its checkpoint or its last step says
  std::optional<data::ShardId> shard_in_use_;
  Duration processor_time_{};  // at the last look
  std::optional<MonotonicTime> processor_looked_;
  bool sizing_directory_ = false;

  // Compute thread.
  std::unique_ptr<TrainingSession> session_;
  std::unique_ptr<TrainingSession> text_session_;  // weights only, while there is no training
  RouterLoad router_;
  MonotonicTime progress_reported_{};

  // Last, so that they are joined first, core the last.
  std::unique_ptr<Executor> core_;
  std::unique_ptr<Executor> sensors_;
  std::unique_ptr<Executor> reader_;  // questions to the disk
  std::unique_ptr<Executor> files_;   // work on checkpoints, one at a time
  std::unique_ptr<Executor> compute_;
};

}  // namespace neuroshard::engine::detail
