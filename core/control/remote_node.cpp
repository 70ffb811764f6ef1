#include "core/control/detail/remote_node_impl.h"

#include "core/control/detail/call_rules.h"

namespace neuroshard::control {
namespace detail {
namespace {

constexpr std::chrono::seconds query_limit{60};  // the core answers queries between two training steps
constexpr std::chrono::seconds hand_over_limit{10};

// A query, with its answer as a value.
template <class Message, class T, class Request>
Expected<void> ask(RemoteSession& session, Request request, node::Reply<T> reply,
                   RemoteSession::Method<Request, Message> method) {
  NS_ASSIGN_OR_RETURN(auto link, session.link());
  return session.call<Request, Message>(
      std::move(link), std::move(request), query_limit, method,
      [reply = std::move(reply)](const grpc::Status& status, const Message& message) {
        if (status.ok()) {
          reply(decode(message));
        } else {
          reply(to_error(status));
        }
      });
}

// A message whose answer says nothing.
template <class Request, class Message>
Expected<void> hand_over(RemoteSession& session, Request request,
                         RemoteSession::Method<Request, Message> method) {
  NS_ASSIGN_OR_RETURN(auto link, session.link());
  return session.call<Request, Message>(std::move(link), std::move(request), hand_over_limit, method,
                                        [](const grpc::Status&, const Message&) {});
}

}  // namespace

RemoteNodeImpl::RemoteNodeImpl(ConnectOptions options) : RemoteParts(std::move(options)) {}

std::shared_ptr<const node::Snapshot> RemoteNodeImpl::snapshot() const {
  return session_.snapshot();
}

std::unique_ptr<node::Subscription> RemoteNodeImpl::subscribe(node::EventHandler on_event) {
  return session_.subscribers().add(std::move(on_event));
}

LinkView RemoteNodeImpl::link() const {
  return session_.view();
}

std::unique_ptr<node::Subscription> RemoteNodeImpl::watch_link(std::function<void()> on_change) {
  return session_.watch_view(std::move(on_change));
}

Expected<node::CommandId> RemoteNodeImpl::start_training(const node::TrainingPlan& plan) {
  v1::CommandRequest request;
  request.mutable_start_training()->set_text_path(plan.text_path);
  request.mutable_start_training()->set_steps(plan.steps);
  request.mutable_start_training()->set_until_step(plan.until_step);
  return commands_.send(request);
}

Expected<node::CommandId> RemoteNodeImpl::stop_training() {
  v1::CommandRequest request;
  request.mutable_stop_training();
  return commands_.send(request);
}

Expected<node::CommandId> RemoteNodeImpl::set_contributing(bool on) {
  v1::CommandRequest request;
  request.mutable_set_contributing()->set_on(on);
  return commands_.send(request);
}

Expected<node::CommandId> RemoteNodeImpl::snooze(std::chrono::seconds duration) {
  if (duration.count() < 1) return make_error(ErrorCode::InvalidArgument, "a snooze lasts at least a second");
  v1::CommandRequest request;
  request.mutable_snooze()->set_seconds(static_cast<std::uint64_t>(duration.count()));
  return commands_.send(request);
}

Expected<node::CommandId> RemoteNodeImpl::finish() {
  v1::CommandRequest request;
  request.mutable_finish();
  return commands_.send(request);
}

Expected<node::CommandId> RemoteNodeImpl::override_rules(std::chrono::seconds duration) {
  if (duration.count() < 0)
    return make_error(ErrorCode::InvalidArgument, "the time without rules can't be negative");
  v1::CommandRequest request;
  request.mutable_override_rules()->set_seconds(static_cast<std::uint64_t>(duration.count()));
  return commands_.send(request);
}

Expected<void> RemoteNodeImpl::report_session(const node::SessionSensors& sensors) {
  v1::SessionReport request;
  encode(sensors, &request);
  return hand_over(session_, std::move(request), &AsyncControl::ReportSession);
}

Expected<node::CommandId> RemoteNodeImpl::save_checkpoint() {
  v1::CommandRequest request;
  request.mutable_save_checkpoint();
  return commands_.send(request);
}

Expected<node::CommandId> RemoteNodeImpl::restore_checkpoint(const std::string& name) {
  v1::CommandRequest request;
  request.mutable_restore_checkpoint()->set_name(name);
  return commands_.run(request);
}

Expected<node::CommandId> RemoteNodeImpl::undo_restore() {
  v1::CommandRequest request;
  request.mutable_undo_restore();
  return commands_.run(request);
}

Expected<node::CommandId> RemoteNodeImpl::verify_checkpoint(const std::string& name) {
  v1::CommandRequest request;
  request.mutable_verify_checkpoint()->set_name(name);
  return commands_.run(request);
}

Expected<node::CommandId> RemoteNodeImpl::compare_checkpoints(const std::string& first,
                                                              const std::string& second) {
  v1::CommandRequest request;
  request.mutable_compare_checkpoints()->set_first(first);
  request.mutable_compare_checkpoints()->set_second(second);
  return commands_.run(request);
}

Expected<node::CommandId> RemoteNodeImpl::pin_checkpoint(const std::string& name, bool pinned) {
  v1::CommandRequest request;
  request.mutable_pin_checkpoint()->set_name(name);
  request.mutable_pin_checkpoint()->set_pinned(pinned);
  return commands_.run(request);
}

Expected<node::CommandId> RemoteNodeImpl::delete_checkpoint(const std::string& name) {
  v1::CommandRequest request;
  request.mutable_delete_checkpoint()->set_name(name);
  return commands_.run(request);
}

Expected<node::CommandId> RemoteNodeImpl::prune_checkpoints(const node::PrunePolicy& policy) {
  v1::CommandRequest request;
  encode(policy, request.mutable_prune_checkpoints());
  return commands_.run(request);
}

Expected<node::CommandId> RemoteNodeImpl::export_checkpoint(const std::string& name,
                                                            const std::string& format,
                                                            const std::string& path) {
  v1::CommandRequest request;
  request.mutable_export_checkpoint()->set_name(name);
  request.mutable_export_checkpoint()->set_format(format);
  request.mutable_export_checkpoint()->set_path(path);
  return commands_.run(request);
}

Expected<node::CommandId> RemoteNodeImpl::import_checkpoint(const std::string& path) {
  v1::CommandRequest request;
  request.mutable_import_checkpoint()->set_path(path);
  return commands_.run(request);
}

Expected<node::CommandId> RemoteNodeImpl::generate(const node::GenerateRequest& request,
                                                   node::TextHandler on_text) {
  if (request.prompt.size() > node::max_prompt_bytes)
    return make_error(ErrorCode::InvalidArgument, "the prompt is too long: at most 64 KiB are read");
  if (request.prompt_tokens.size() > node::max_prompt_tokens)
    return make_error(ErrorCode::InvalidArgument, "the prompt is too long: at most 16384 tokens are read");
  v1::CommandRequest sent;
  encode(request, sent.mutable_generate());
  return commands_.run(sent, std::move(on_text));
}

Expected<void> RemoteNodeImpl::cancel(node::CommandId id) {
  return commands_.cancel(id);
}

Expected<node::CommandId> RemoteNodeImpl::set_setting(const std::string& name, const std::string& value) {
  v1::CommandRequest request;
  request.mutable_set_setting()->set_name(name);
  request.mutable_set_setting()->set_value(value);
  return commands_.send(request);
}

Expected<node::CommandId> RemoteNodeImpl::request_shutdown() {
  v1::CommandRequest request;
  request.mutable_shutdown();
  return commands_.send(request);
}

Expected<void> RemoteNodeImpl::query_series(const node::SeriesQuery& query, node::Reply<node::Series> reply) {
  v1::SeriesQuery request;
  request.set_name(query.name);
  request.set_from_step(query.from_step);
  request.set_to_step(query.to_step);
  request.set_buckets(static_cast<std::uint32_t>(query.buckets));
  return ask<v1::SeriesReply>(session_, request, std::move(reply), &AsyncControl::QuerySeries);
}

Expected<void> RemoteNodeImpl::query_logs(const node::LogQuery& query, node::Reply<node::LogPage> reply) {
  v1::LogQuery request;
  request.set_after(query.after);
  request.set_limit(static_cast<std::uint32_t>(query.limit));
  request.set_least(static_cast<std::uint32_t>(query.least));
  return ask<v1::LogPage>(session_, request, std::move(reply), &AsyncControl::QueryLogs);
}

Expected<void> RemoteNodeImpl::query_checkpoints(const node::CheckpointQuery& query,
                                                 node::Reply<node::CheckpointPage> reply) {
  v1::CheckpointQuery request;
  request.set_after(query.after);
  request.set_limit(static_cast<std::uint32_t>(query.limit));
  return ask<v1::CheckpointPage>(session_, request, std::move(reply), &AsyncControl::QueryCheckpoints);
}

Expected<void> RemoteNodeImpl::query_prune(const node::PrunePolicy& policy,
                                           node::Reply<node::PrunePreview> reply) {
  v1::PrunePolicy request;
  encode(policy, &request);
  return ask<v1::PrunePreview>(session_, request, std::move(reply), &AsyncControl::QueryPrune);
}

Expected<void> RemoteNodeImpl::query_slots(node::Reply<std::vector<node::SlotEntry>> reply) {
  return ask<v1::SlotList>(session_, v1::SlotsQuery(), std::move(reply), &AsyncControl::QuerySlots);
}

Expected<void> RemoteNodeImpl::query_experts(node::Reply<std::vector<node::ExpertLoad>> reply) {
  return ask<v1::ExpertList>(session_, v1::ExpertsQuery(), std::move(reply), &AsyncControl::QueryExperts);
}

Expected<void> RemoteNodeImpl::query_data(node::Reply<node::DataView> reply) {
  return ask<v1::Data>(session_, v1::DataQuery(), std::move(reply), &AsyncControl::QueryData);
}

Expected<void> RemoteNodeImpl::query_rounds(node::Reply<node::RoundsReport> reply) {
  return ask<v1::RoundsReport>(session_, v1::RoundsQuery(), std::move(reply), &AsyncControl::QueryRounds);
}

Expected<void> RemoteNodeImpl::query_network(node::Reply<node::NetworkView> reply) {
  return ask<v1::Network>(session_, v1::NetworkQuery(), std::move(reply), &AsyncControl::QueryNetwork);
}

Expected<void> RemoteNodeImpl::query_invitation(bool with_vote, node::Reply<node::Invitation> reply) {
  v1::InvitationQuery request;
  request.set_with_vote(with_vote);
  return ask<v1::Invitation>(session_, request, std::move(reply), &AsyncControl::QueryInvitation);
}

Expected<void> RemoteNodeImpl::http_key(node::HttpKeyAction action, node::Reply<node::HttpKey> reply) {
  v1::HttpKeyRequest request;
  request.set_action(static_cast<std::uint32_t>(action));
  return ask<v1::HttpKeyReply>(session_, request, std::move(reply), &AsyncControl::HttpKey);
}

Expected<void> RemoteNodeImpl::test_reachability() {
  return hand_over(session_, v1::ReachabilityTest(), &AsyncControl::TestReachability);
}

Expected<void> RemoteDecisions::continue_network(const node::ContinuationRequest& request,
                                                 node::Reply<node::ContinuationReply> reply) {
  v1::ContinuationRequest sent;
  encode(request, &sent);
  return ask<v1::ContinuationReply>(session_, sent, std::move(reply), &AsyncControl::ContinueNetwork);
}

Expected<void> RemoteDecisions::revoke_node(const node::RevocationRequest& request,
                                            node::Reply<node::RevocationReply> reply) {
  v1::RevocationRequest sent;
  encode(request, &sent);
  return ask<v1::RevocationReply>(session_, sent, std::move(reply), &AsyncControl::RevokeNode);
}

Expected<void> RemoteDecisions::query_what_if(const node::WhatIfQuery& query,
                                              node::Reply<node::WhatIf> reply) {
  v1::WhatIfQuery request;
  encode(query, &request);
  return ask<v1::WhatIf>(session_, request, std::move(reply), &AsyncControl::QueryWhatIf);
}

Expected<node::CommandId> RemoteRecords::export_history(const std::string& format, const std::string& path) {
  v1::CommandRequest request;
  request.mutable_export_history()->set_format(format);
  request.mutable_export_history()->set_path(path);
  return commands_.run(request);
}

Expected<void> RemoteRecords::query_evaluations(const node::EvaluationQuery& query,
                                                node::Reply<node::EvaluationPage> reply) {
  v1::EvaluationQuery request;
  request.set_limit(static_cast<std::uint32_t>(query.limit));
  return ask<v1::EvaluationPage>(session_, request, std::move(reply), &AsyncControl::QueryEvaluations);
}

Expected<void> RemoteNodeImpl::query_tokens(const std::string& text,
                                            node::Reply<std::vector<node::TokenPiece>> reply) {
  if (text.size() > node::max_token_text)
    return make_error(ErrorCode::InvalidArgument,
                      "the text is too long: at most 4 KiB can be split into tokens");
  v1::TokensQuery request;
  request.set_text(text);
  return ask<v1::TokenList>(session_, request, std::move(reply), &AsyncControl::QueryTokens);
}

Expected<void> RemoteNodeImpl::query_settings(node::Reply<std::vector<node::SettingEntry>> reply) {
  return ask<v1::SettingList>(session_, v1::SettingsQuery(), std::move(reply), &AsyncControl::QuerySettings);
}

}  // namespace detail

std::unique_ptr<RemoteNode> connect(ConnectOptions options) {
  return std::make_unique<detail::RemoteNodeImpl>(std::move(options));
}

}  // namespace neuroshard::control
