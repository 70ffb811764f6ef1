// A core at full rate, in this process: snapshots and steps a thousand times a second, log lines as fast as
// asked for. Its answers come from a thread of its own, as those of a real core do.
#pragma once

#include <atomic>
#include <memory>

#include "core/base/executor.h"
#include "tests/support/fake_node.h"

namespace neuroshard::testing {

class LoadNode final : public node::Node {
 public:
  LoadNode();
  ~LoadNode() override;

  void start(int changes_per_second, int log_lines_per_second);
  void stop();
  std::uint64_t log_lines() const;  // written so far
  std::uint64_t changes() const { return changes_.load(); }

  // ---- Node: logs are made here, the rest is the fake core's ----
  Expected<void> query_logs(const node::LogQuery& query, node::Reply<node::LogPage> reply) override;
  std::shared_ptr<const node::Snapshot> snapshot() const override { return fake_.snapshot(); }
  std::unique_ptr<node::Subscription> subscribe(node::EventHandler on_event) override {
    return fake_.subscribe(std::move(on_event));
  }
  Expected<node::CommandId> start_training(const node::TrainingPlan& plan) override {
    return fake_.start_training(plan);
  }
  Expected<node::CommandId> stop_training() override { return fake_.stop_training(); }
  Expected<node::CommandId> set_contributing(bool on) override { return fake_.set_contributing(on); }
  Expected<node::CommandId> snooze(std::chrono::seconds duration) override { return fake_.snooze(duration); }
  Expected<node::CommandId> finish() override { return fake_.finish(); }
  Expected<node::CommandId> override_rules(std::chrono::seconds duration) override {
    return fake_.override_rules(duration);
  }
  Expected<void> report_session(const node::SessionSensors& sensors) override {
    return fake_.report_session(sensors);
  }
  Expected<node::CommandId> save_checkpoint() override { return fake_.save_checkpoint(); }
  Expected<node::CommandId> restore_checkpoint(const std::string& name) override {
    return fake_.restore_checkpoint(name);
  }
  Expected<node::CommandId> undo_restore() override { return fake_.undo_restore(); }
  Expected<node::CommandId> verify_checkpoint(const std::string& name) override {
    return fake_.verify_checkpoint(name);
  }
  Expected<node::CommandId> compare_checkpoints(const std::string& first,
                                                const std::string& second) override {
    return fake_.compare_checkpoints(first, second);
  }
  Expected<node::CommandId> pin_checkpoint(const std::string& name, bool pinned) override {
    return fake_.pin_checkpoint(name, pinned);
  }
  Expected<node::CommandId> delete_checkpoint(const std::string& name) override {
    return fake_.delete_checkpoint(name);
  }
  Expected<node::CommandId> prune_checkpoints(const node::PrunePolicy& policy) override {
    return fake_.prune_checkpoints(policy);
  }
  Expected<node::CommandId> export_checkpoint(const std::string& name, const std::string& format,
                                              const std::string& path) override {
    return fake_.export_checkpoint(name, format, path);
  }
  Expected<node::CommandId> import_checkpoint(const std::string& path) override {
    return fake_.import_checkpoint(path);
  }
  Expected<node::CommandId> generate(const node::GenerateRequest& request,
                                     std::function<void(std::string)> on_text) override {
    return fake_.generate(request, std::move(on_text));
  }
  Expected<void> cancel(node::CommandId id) override { return fake_.cancel(id); }
  Expected<node::CommandId> set_setting(const std::string& name, const std::string& value) override {
    return fake_.set_setting(name, value);
  }
  Expected<node::CommandId> request_shutdown() override { return fake_.request_shutdown(); }
  Expected<void> query_series(const node::SeriesQuery& query, node::Reply<node::Series> reply) override {
    return fake_.query_series(query, std::move(reply));
  }
  Expected<void> query_checkpoints(const node::CheckpointQuery& query,
                                   node::Reply<node::CheckpointPage> reply) override {
    return fake_.query_checkpoints(query, std::move(reply));
  }
  Expected<void> query_prune(const node::PrunePolicy& policy,
                             node::Reply<node::PrunePreview> reply) override {
    return fake_.query_prune(policy, std::move(reply));
  }
  Expected<void> query_slots(node::Reply<std::vector<node::SlotEntry>> reply) override {
    return fake_.query_slots(std::move(reply));
  }
  Expected<void> query_experts(node::Reply<std::vector<node::ExpertLoad>> reply) override {
    return fake_.query_experts(std::move(reply));
  }
  Expected<void> query_network(node::Reply<node::NetworkView> reply) override {
    return fake_.query_network(std::move(reply));
  }
  Expected<void> query_rounds(node::Reply<node::RoundsReport> reply) override {
    return fake_.query_rounds(std::move(reply));
  }
  Expected<void> test_reachability() override { return fake_.test_reachability(); }
  Expected<void> query_data(node::Reply<node::DataView> reply) override {
    return fake_.query_data(std::move(reply));
  }
  Expected<void> query_tokens(const std::string& text,
                              node::Reply<std::vector<node::TokenPiece>> reply) override {
    return fake_.query_tokens(text, std::move(reply));
  }
  Expected<void> query_settings(node::Reply<std::vector<node::SettingEntry>> reply) override {
    return fake_.query_settings(std::move(reply));
  }

 private:
  void change();

  FakeNode fake_;
  SystemClock clock_;
  std::unique_ptr<TimerHandle> timer_;  // of the executor's thread; outlives it
  std::unique_ptr<Executor> executor_;
  std::atomic<int> per_second_{0}, lines_per_second_{0};
  std::atomic<std::int64_t> log_start_{0};
  std::atomic<std::uint64_t> changes_{0};
  std::atomic<std::uint64_t> lines_before_{0};
};

}  // namespace neuroshard::testing
