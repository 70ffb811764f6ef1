// A Node that does what a test says: publishes the snapshots it is given, emits events, and answers commands
// and queries at once, later, or never. Its state is plain data that the test fills in before use;
// commands on checkpoints change it as the engine would. Threads: any.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/node/network_view.h"
#include "core/node/node.h"
#include "core/node/rounds_report.h"
#include "core/node/subscribers.h"

namespace neuroshard::testing {

class FakeNode final : public node::Node {
 public:
  FakeNode();

  // ---- what the test does ----
  // The change becomes the next snapshot, with the next version.
  void publish(const std::function<void(node::Snapshot&)>& change);
  void emit(const node::Event& event);

  // Commands as text: "contribute off", "snooze 5", "set cpu_threads 2", "verify NAME".
  std::vector<std::string> commands() const;
  // The threads that commands, queries and subscriptions came from.
  std::set<std::thread::id> callers() const;
  // Refused at once with this error from now on (empty message: accepted again).
  void refuse(Error error);
  // Accepted but not done until finish_commands() or finish().
  void hold_commands();
  void finish_commands(std::optional<Error> error = std::nullopt);
  // The newest held command whose text begins so; 0: none.
  node::CommandId held(const std::string& beginning) const;
  // Of a held command: how far it is, what a generate() writes, its outcome.
  void progress(node::CommandId id, const std::string& activity, std::uint64_t done, std::uint64_t total);
  void say(node::CommandId id, const std::string& text);
  void finish(node::CommandId id, Expected<node::CommandResult> outcome = node::CommandResult{});

  // Queries by name: "series loss", "logs", "slots".
  std::vector<std::string> queries() const;
  // Not answered until release_queries().
  void hold_queries();
  void release_queries();
  // Every answer is this error from now on (empty message: answered again).
  void fail_queries(Error error);

  std::vector<node::CheckpointEntry> checkpoints;  // set before use; newest first
  std::vector<node::LogEntry> logs;                // ascending
  std::vector<node::SettingEntry> settings;
  // By name, ascending; asked for in fewer buckets they are merged as the history does. Without an entry,
  // "loss" is 1, 2, 3 … and any other name is empty.
  std::map<std::string, std::vector<node::SeriesBucket>> series;
  std::vector<node::SlotEntry> slots;
  std::vector<node::ExpertLoad> experts;
  node::DataView data;
  node::NetworkView network;
  node::RoundsReport rounds;
  node::PrunePreview prune;  // what query_prune tells and prune_checkpoints removes
  // Outcomes of commands that are not held. An empty name is filled in.
  node::VerifyResult verified{{}, true, {}, 0};
  node::CheckpointComparison comparison;
  std::vector<std::string> text{"It ", "works."};  // what generate() writes
  std::vector<node::SessionSensors> reports() const;

  // ---- Node ----
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
  // A held command is done with Cancelled.
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
  // One token for each byte.
  Expected<void> query_tokens(const std::string& text,
                              node::Reply<std::vector<node::TokenPiece>> reply) override;
  Expected<void> query_settings(node::Reply<std::vector<node::SettingEntry>> reply) override;

 private:
  struct Held {
    node::CommandId id = 0;
    std::string text;
    std::function<void(std::string)> on_text;
  };
  // The effect of a command that is not held; gives its result.
  using Effect = std::function<node::CommandResult()>;
  Expected<node::CommandId> accept(std::string text, std::function<void(node::Snapshot&)> change = {},
                                   Effect effect = {}, std::function<void(std::string)> on_text = {});
  template <class T>
  Expected<void> answer(std::string name, node::Reply<T> reply, Expected<T> value);
  Expected<void> known(const std::string& checkpoint) const;
  void remove_checkpoint(const std::string& name);

  mutable std::mutex mutex_;
  std::shared_ptr<const node::Snapshot> published_;
  std::vector<std::string> commands_, queries_;
  std::set<std::thread::id> callers_;
  std::vector<Held> held_;
  std::vector<std::function<void()>> waiting_answers_;
  std::vector<node::SessionSensors> reports_;
  std::optional<Error> refusal_, query_failure_;
  bool hold_ = false, hold_queries_ = false;
  node::CommandId next_ = 1;
  std::shared_ptr<node::Subscribers> subscribers_ = std::make_shared<node::Subscribers>();
};

}  // namespace neuroshard::testing
