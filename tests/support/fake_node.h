// A Node that does what a test says: publishes the snapshots it is given, emits events, and answers commands
// and queries at once, later, or never. Threads: any.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "core/node/node.h"
#include "core/node/subscribers.h"

namespace neuroshard::testing {

class FakeNode final : public node::Node {
 public:
  FakeNode();

  // ---- what the test does ----
  // The change becomes the next snapshot, with the next version.
  void publish(const std::function<void(node::Snapshot&)>& change);
  void emit(const node::Event& event);
  // Commands as text: "contribute off", "snooze 5", "set cpu_threads 2".
  std::vector<std::string> commands() const;
  // Refused at once with this error from now on (empty message: accepted again).
  void refuse(Error error);
  // Accepted but not done until finish_commands().
  void hold_commands();
  void finish_commands(std::optional<Error> error = std::nullopt);

  std::vector<node::CheckpointEntry> checkpoints;  // set before use; newest first
  std::vector<node::LogEntry> logs;                // ascending
  std::vector<node::SettingEntry> settings;

  // ---- Node ----
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
  // A series "loss" of 1, 2, 3 …; any other name is unknown.
  Expected<void> query_series(const node::SeriesQuery& query, node::Reply<node::Series> reply) override;
  Expected<void> query_logs(const node::LogQuery& query, node::Reply<node::LogPage> reply) override;
  Expected<void> query_checkpoints(const node::CheckpointQuery& query,
                                   node::Reply<node::CheckpointPage> reply) override;
  Expected<void> query_settings(node::Reply<std::vector<node::SettingEntry>> reply) override;

 private:
  Expected<node::CommandId> accept(std::string text, std::function<void(node::Snapshot&)> change = {});

  mutable std::mutex mutex_;
  std::shared_ptr<const node::Snapshot> published_;
  std::vector<std::string> commands_;
  std::vector<node::CommandId> held_;
  std::optional<Error> refusal_;
  bool hold_ = false;
  node::CommandId next_ = 1;
  std::shared_ptr<node::Subscribers> subscribers_ = std::make_shared<node::Subscribers>();
};

}  // namespace neuroshard::testing
