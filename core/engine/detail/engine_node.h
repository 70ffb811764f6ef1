// The engine behind node::Node: makes the parts and forwards each call to the part that handles it.
//
//   commands ─→ CommandQueue ─→ core executor ─→ part ─→ JobScheduler ─→ compute thread
//                                    │            │ └─→ FileJobs, DiskReader ─→ files and reading threads
//                                    └────────────┴─→ SnapshotPublisher ─→ snapshot, events
//
// Threads: any, as for core/node/node.h; the core executor owns the state of every part.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "core/engine/detail/checkpoint_commands.h"
#include "core/engine/detail/command_queue.h"
#include "core/engine/detail/contribute_controller.h"
#include "core/engine/detail/disk_reader.h"
#include "core/engine/detail/engine_context.h"
#include "core/engine/detail/file_jobs.h"
#include "core/engine/detail/history_queries.h"
#include "core/engine/detail/job_scheduler.h"
#include "core/engine/detail/model_queries.h"
#include "core/engine/detail/record_commands.h"
#include "core/engine/detail/resource_monitor.h"
#include "core/engine/detail/restore_controller.h"
#include "core/engine/detail/session_host.h"
#include "core/engine/detail/settings_commands.h"
#include "core/engine/detail/snapshot_publisher.h"
#include "core/engine/detail/text_generation.h"
#include "core/engine/detail/training_controller.h"
#include "core/engine/engine.h"

namespace neuroshard::engine::detail {

// The part of the seam whose class comes from outside.
class EngineParts : public Engine {
 public:
  node::MemberDecisions& decisions() final { return *decisions_; }

 protected:
  explicit EngineParts(std::shared_ptr<node::MemberDecisions> decisions) : decisions_(std::move(decisions)) {}

 private:
  const std::shared_ptr<node::MemberDecisions> decisions_;
};

class EngineNode final : public EngineParts {
 public:
  EngineNode(std::unique_ptr<config::DataDirectory> directory, EngineServices services,
             EngineOptions options);
  ~EngineNode() override;

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
                                     node::TextHandler on_text) override;
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
  Expected<void> http_key(node::HttpKeyAction action, node::Reply<node::HttpKey> reply) override;
  Expected<void> query_invitation(bool with_vote, node::Reply<node::Invitation> reply) override;
  Expected<void> query_rounds(node::Reply<node::RoundsReport> reply) override;
  Expected<void> test_reachability() override;
  node::Records& records() override { return records_; }
  Expected<void> query_tokens(const std::string& text,
                              node::Reply<std::vector<node::TokenPiece>> reply) override;
  Expected<void> query_settings(node::Reply<std::vector<node::SettingEntry>> reply) override;

 private:
  bool end_if_due();

  const std::unique_ptr<config::DataDirectory> directory_;
  const EngineServices services_;
  const EngineOptions options_;
  // Owns the state below. Constructed before it; the destructor joins it before it destroys that state.
  std::unique_ptr<Executor> core_;
  const std::shared_ptr<net::Mailbox> arrivals_;

  SnapshotPublisher publisher_;
  JobScheduler jobs_;
  CommandQueue commands_;
  const EngineContext context_;
  DiskReader reader_;
  FileJobs files_;
  SessionHost host_;  // compute thread
  SettingsCommands settings_;
  ContributeController contribute_;
  ModelQueries model_;
  HistoryQueries history_;
  ResourceMonitor resources_;
  TrainingController training_;
  RestoreController restore_;
  CheckpointCommands checkpoints_;
  RecordCommands records_;
  TextGeneration text_;

  // Core executor.
  CommandIds shutdowns_;
  std::function<void()> look_;  // at rules and resources; posts itself again
  std::unique_ptr<TimerHandle> look_timer_;
  std::promise<void> ended_;
};

}  // namespace neuroshard::engine::detail
