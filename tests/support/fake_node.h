// A Node that a test controls (node_script.h). Its values are plain data that the test fills in before use;
// commands on checkpoints change them as the engine would. Threads: any.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/node/member_decisions.h"
#include "core/node/network_view.h"
#include "core/node/node.h"
#include "core/node/records.h"
#include "core/node/rounds_report.h"
#include "tests/support/node_script.h"

namespace neuroshard::testing {

// Keeps all requests. Threads: one.
class FakeDecisions final : public node::MemberDecisions {
 public:
  Expected<void> continue_network(const node::ContinuationRequest& request,
                                  node::Reply<node::ContinuationReply> reply) override {
    continuations.push_back(request);
    reply(node::ContinuationReply{request.without});
    return {};
  }
  Expected<void> revoke_node(const node::RevocationRequest& request,
                             node::Reply<node::RevocationReply> reply) override {
    revocations.push_back(request);
    reply(revoked);
    return {};
  }
  Expected<void> query_what_if(const node::WhatIfQuery& query, node::Reply<node::WhatIf> reply) override {
    asked.push_back(query);
    if (refusal) return *refusal;
    reply(what_if);
    return {};
  }
  std::vector<node::WhatIfQuery> asked;
  node::WhatIf what_if;          // the answer
  std::optional<Error> refusal;  // instead of it
  std::vector<node::ContinuationRequest> continuations;
  std::vector<node::RevocationRequest> revocations;
  node::RevocationReply revoked;  // the answer
};

// Exports are commands of the script. Threads: any.
class FakeRecords final : public node::Records {
 public:
  explicit FakeRecords(NodeScript& script) : script_(script) {}
  Expected<node::CommandId> export_history(const std::string& format, const std::string& path) override;
  Expected<void> query_evaluations(const node::EvaluationQuery& query,
                                   node::Reply<node::EvaluationPage> reply) override;
  std::vector<node::EvaluationEntry> evaluations;  // set before use; newest first

 private:
  NodeScript& script_;
};

// The parts of the node that have a class of their own.
class FakeParts : public node::Node, public NodeScript {
 public:
  node::MemberDecisions& decisions() override { return decided; }
  node::Records& records() override { return recorded; }
  FakeDecisions decided;
  FakeRecords recorded{*this};
};

class FakeNode : public FakeParts {
 public:
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
  node::HttpKey http_key_now{"ns-0123456789abcdef", "/srv/neuroshard/http.key"};
  std::vector<bool> invited;  // with_vote of each query_invitation
  node::RoundsReport rounds;
  node::PrunePreview prune;  // the answer of query_prune; prune_checkpoints removes these
  // Outcomes of commands that are not held. An empty name is filled in.
  node::VerifyResult verified{{}, true, {}, 0};
  node::CheckpointComparison comparison;
  std::vector<std::string> text{"It ", "works."};  // written by generate()
  std::vector<node::TextPiece> pieces;             // written after it
  node::GenerateRequest generated;                 // the newest request; to be read once it is done
  std::vector<node::SessionSensors> reports() const;

  // ---- Node ----
  std::shared_ptr<const node::Snapshot> snapshot() const override;
  std::unique_ptr<node::Subscription> subscribe(node::EventHandler on_event) override;
  Expected<node::CommandId> start_training(const node::TrainingPlan& plan) override;
  Expected<node::CommandId> stop_training() override;
  Expected<node::CommandId> set_contributing(bool on) override;
  Expected<node::CommandId> snooze(std::chrono::seconds duration) override;
  using NodeScript::finish;
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
  Expected<void> query_invitation(bool with_vote, node::Reply<node::Invitation> reply) override;
  Expected<void> http_key(node::HttpKeyAction action, node::Reply<node::HttpKey> reply) override;
  Expected<void> query_rounds(node::Reply<node::RoundsReport> reply) override;
  Expected<void> test_reachability() override;
  // One token for each byte.
  Expected<void> query_tokens(const std::string& text,
                              node::Reply<std::vector<node::TokenPiece>> reply) override;
  Expected<void> query_settings(node::Reply<std::vector<node::SettingEntry>> reply) override;

 private:
  Expected<void> known(const std::string& checkpoint) const;
  void remove_checkpoint(const std::string& name);

  mutable std::mutex values_;
  std::vector<node::SessionSensors> reports_;
};

}  // namespace neuroshard::testing
