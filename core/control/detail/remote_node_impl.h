// RemoteNode over gRPC: encodes commands and queries as messages. The session holds the connection and the
// state that comes over it (remote_session.h); commands have outcomes of their own (remote_commands.h).
#pragma once

#include "core/control/detail/remote_commands.h"
#include "core/control/detail/remote_session.h"

namespace neuroshard::control::detail {

class RemoteDecisions final : public node::MemberDecisions {
 public:
  explicit RemoteDecisions(RemoteSession& session) : session_(session) {}
  Expected<void> continue_network(const node::ContinuationRequest& request,
                                  node::Reply<node::ContinuationReply> reply) override;
  Expected<void> revoke_node(const node::RevocationRequest& request,
                             node::Reply<node::RevocationReply> reply) override;
  Expected<void> query_what_if(const node::WhatIfQuery& query, node::Reply<node::WhatIf> reply) override;

 private:
  RemoteSession& session_;
};

class RemoteRecords final : public node::Records {
 public:
  RemoteRecords(RemoteSession& session, RemoteCommands& commands) : session_(session), commands_(commands) {}
  Expected<node::CommandId> export_history(const std::string& format, const std::string& path) override;
  Expected<void> query_evaluations(const node::EvaluationQuery& query,
                                   node::Reply<node::EvaluationPage> reply) override;

 private:
  RemoteSession& session_;
  RemoteCommands& commands_;
};

// The connection, and the parts of the node that have a class of their own.
class RemoteParts : public RemoteNode {
 public:
  node::MemberDecisions& decisions() override { return decisions_; }
  node::Records& records() override { return records_; }

 protected:
  explicit RemoteParts(ConnectOptions options) : session_(std::move(options)), commands_(session_) {}

  RemoteSession session_;
  RemoteDecisions decisions_{session_};
  RemoteCommands commands_;  // closes the session at its end
  RemoteRecords records_{session_, commands_};
};

class RemoteNodeImpl final : public RemoteParts {
 public:
  explicit RemoteNodeImpl(ConnectOptions options);

  std::shared_ptr<const node::Snapshot> snapshot() const override;
  std::unique_ptr<node::Subscription> subscribe(node::EventHandler on_event) override;
  LinkView link() const override;
  std::unique_ptr<node::Subscription> watch_link(std::function<void()> on_change) override;

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
  Expected<void> query_tokens(const std::string& text,
                              node::Reply<std::vector<node::TokenPiece>> reply) override;
  Expected<void> query_settings(node::Reply<std::vector<node::SettingEntry>> reply) override;
};

}  // namespace neuroshard::control::detail
