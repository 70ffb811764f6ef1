// The commands and questions of a RemoteNode.
#include "core/control/detail/call_rules.h"
#include "core/control/detail/remote_node_impl.h"

namespace neuroshard::control::detail {
namespace {

constexpr std::chrono::seconds short_limit{10};  // of calls that only hand something over

Error command_error(const grpc::Status& status) {
  Error error = to_error(status);
  if (!status.error_details().empty()) return error;
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    return make_error(ErrorCode::Unsupported,
                      "the running core is older and does not know this: stop it and start the installed, "
                      "newer one");
  }
  error.message += "; it is not known whether the command was done";
  return error;
}

Expected<void> check_length(const v1::CommandRequest& request) {
  // What gRPC adds is less than the rest.
  if (request.ByteSizeLong() <= static_cast<std::size_t>(max_request_bytes - max_metadata_bytes)) return {};
  return make_error(ErrorCode::InvalidArgument, "the command is too long");
}

}  // namespace

Expected<node::CommandId> RemoteNodeImpl::take_command_place() {
  std::lock_guard lock(mutex_);
  if (open_commands_ >= open_commands)
    return make_error(ErrorCode::Busy, "too many commands are under way; try again in a moment");
  ++open_commands_;
  return next_command_++;
}

void RemoteNodeImpl::give_command_place_back() {
  std::lock_guard lock(mutex_);
  --open_commands_;
}

void RemoteNodeImpl::on_done(node::CommandId id, const v1::CommandReply* reply, const grpc::Status& status) {
  node::CommandDone done{id, std::nullopt, {}};
  if (status.ok() && reply != nullptr) {
    // So that the snapshot is never older than the outcome.
    if (reply->has_snapshot()) publish(decode(reply->snapshot()));
    done.result = decode_result(*reply);
  } else {
    done.error =
        status.ok() ? make_error(ErrorCode::Internal, "the core gave no outcome") : command_error(status);
  }
  give_command_place_back();
  subscribers_->emit(done);
}

Expected<node::CommandId> RemoteNodeImpl::command(const Fill& fill) {
  NS_ASSIGN_OR_RETURN(const auto link, current_link());
  auto call = std::make_shared<Call<v1::CommandRequest, v1::CommandReply>>();
  call->link = link;
  fill(&call->request);
  NS_RETURN_IF_ERROR(check_length(call->request));
  link->sign(&call->context);
  NS_ASSIGN_OR_RETURN(const node::CommandId id, take_command_place());
  if (!enter(&call->context, call)) {
    give_command_place_back();
    return make_error(ErrorCode::Cancelled, "the connection is being closed");
  }
  link->stub->async()->Command(&call->context, &call->request, &call->reply,
                               [this, raw = call.get(), id](const grpc::Status& status) {
                                 on_done(id, &raw->reply, status);
                                 leave(&raw->context);
                               });
  return id;
}

// Its methods run on gRPC's threads, one at a time.
class RemoteNodeImpl::RunCall final : public grpc::ClientReadReactor<v1::CommandUpdate> {
 public:
  RunCall(RemoteNodeImpl& owner, std::shared_ptr<const RemoteLink> link,
          std::function<void(std::string)> on_text)
      : owner_(owner), link_(std::move(link)), on_text_(std::move(on_text)) {
    link_->sign(&context);
  }

  Context context;
  v1::CommandRequest request;

  void start(node::CommandId id) {
    id_ = id;
    link_->stub->async()->Run(&context, &request, this);
    StartRead(&update_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    switch (update_.content_case()) {
      case v1::CommandUpdate::kAccepted: accepted(update_.accepted()); break;
      case v1::CommandUpdate::kProgress: {
        node::CommandProgress progress = decode(update_.progress());
        progress.id = id_;
        owner_.subscribers_->emit(progress);
        break;
      }
      case v1::CommandUpdate::kText:
        if (on_text_) on_text_(update_.text());
        break;
      case v1::CommandUpdate::kDone:
        reply_.Swap(update_.mutable_done());
        done_ = true;
        break;
      case v1::CommandUpdate::CONTENT_NOT_SET: break;
    }
    StartRead(&update_);
  }

  void OnDone(const grpc::Status& status) override {
    {
      std::lock_guard lock(owner_.mutex_);
      owner_.runs_.erase(id_);
    }
    owner_.on_done(id_, done_ ? &reply_ : nullptr, status);
    owner_.leave(&context);  // the last: this may be gone afterwards
  }

  // Under the owner's lock: the core's id of this command, to cancel it; none: it is cancelled once it is
  // known.
  std::optional<node::CommandId> want_cancel() {
    cancel_wanted_ = true;
    return core_id_;
  }

 private:
  void accepted(node::CommandId core_id) {
    bool cancel = false;
    {
      std::lock_guard lock(owner_.mutex_);
      core_id_ = core_id;
      cancel = cancel_wanted_;
    }
    if (cancel) static_cast<void>(owner_.cancel(id_).ok());
  }

  RemoteNodeImpl& owner_;
  std::shared_ptr<const RemoteLink> link_;
  std::function<void(std::string)> on_text_;
  node::CommandId id_ = 0;
  v1::CommandUpdate update_;
  v1::CommandReply reply_;
  bool done_ = false;
  std::optional<node::CommandId> core_id_;  // guarded by the owner's mutex, as the next
  bool cancel_wanted_ = false;
};

Expected<node::CommandId> RemoteNodeImpl::run_command(const Fill& fill,
                                                      std::function<void(std::string)> on_text) {
  NS_ASSIGN_OR_RETURN(const auto link, current_link());
  auto call = std::make_shared<RunCall>(*this, link, std::move(on_text));
  fill(&call->request);
  NS_RETURN_IF_ERROR(check_length(call->request));
  NS_ASSIGN_OR_RETURN(const node::CommandId id, take_command_place());
  if (!enter(&call->context, call)) {
    give_command_place_back();
    return make_error(ErrorCode::Cancelled, "the connection is being closed");
  }
  {
    std::lock_guard lock(mutex_);
    runs_[id] = call.get();
  }
  call->start(id);
  return id;
}

Expected<void> RemoteNodeImpl::cancel(node::CommandId id) {
  v1::CancelRequest request;
  {
    std::lock_guard lock(mutex_);
    const auto at = runs_.find(id);
    if (at == runs_.end()) return {};
    const auto core_id = at->second->want_cancel();
    if (!core_id) return {};
    request.set_id(*core_id);
  }
  NS_ASSIGN_OR_RETURN(const auto link, current_link());
  auto call = std::make_shared<Call<v1::CancelRequest, v1::CancelReply>>();
  call->link = link;
  call->request = request;
  link->sign(&call->context);
  call->context.set_deadline(after(short_limit));
  if (!enter(&call->context, call)) return make_error(ErrorCode::Cancelled, "the connection is being closed");
  link->stub->async()->Cancel(&call->context, &call->request, &call->reply,
                              [this, raw = call.get()](const grpc::Status&) { leave(&raw->context); });
  return {};
}

Expected<void> RemoteNodeImpl::report_session(const node::SessionSensors& sensors) {
  NS_ASSIGN_OR_RETURN(const auto link, current_link());
  auto call = std::make_shared<Call<v1::SessionReport, v1::SessionReportReply>>();
  call->link = link;
  encode(sensors, &call->request);
  link->sign(&call->context);
  call->context.set_deadline(after(short_limit));
  if (!enter(&call->context, call)) return make_error(ErrorCode::Cancelled, "the connection is being closed");
  link->stub->async()->ReportSession(&call->context, &call->request, &call->reply,
                                     [this, raw = call.get()](const grpc::Status&) { leave(&raw->context); });
  return {};
}

Expected<node::CommandId> RemoteNodeImpl::start_training(const node::TrainingPlan& plan) {
  return command([&](v1::CommandRequest* request) {
    request->mutable_start_training()->set_text_path(plan.text_path);
    request->mutable_start_training()->set_steps(plan.steps);
    request->mutable_start_training()->set_until_step(plan.until_step);
  });
}

Expected<node::CommandId> RemoteNodeImpl::stop_training() {
  return command([](v1::CommandRequest* request) { request->mutable_stop_training(); });
}

Expected<node::CommandId> RemoteNodeImpl::set_contributing(bool on) {
  return command([on](v1::CommandRequest* request) { request->mutable_set_contributing()->set_on(on); });
}

Expected<node::CommandId> RemoteNodeImpl::snooze(std::chrono::seconds duration) {
  if (duration.count() < 1) return make_error(ErrorCode::InvalidArgument, "a snooze lasts at least a second");
  return command([duration](v1::CommandRequest* request) {
    request->mutable_snooze()->set_seconds(static_cast<std::uint64_t>(duration.count()));
  });
}

Expected<node::CommandId> RemoteNodeImpl::finish() {
  return command([](v1::CommandRequest* request) { request->mutable_finish(); });
}

Expected<node::CommandId> RemoteNodeImpl::override_rules(std::chrono::seconds duration) {
  if (duration.count() < 0)
    return make_error(ErrorCode::InvalidArgument, "rules can't be ignored for less than no time");
  return command([duration](v1::CommandRequest* request) {
    request->mutable_override_rules()->set_seconds(static_cast<std::uint64_t>(duration.count()));
  });
}

Expected<node::CommandId> RemoteNodeImpl::save_checkpoint() {
  return command([](v1::CommandRequest* request) { request->mutable_save_checkpoint(); });
}

Expected<node::CommandId> RemoteNodeImpl::restore_checkpoint(const std::string& name) {
  return run_command(
      [&](v1::CommandRequest* request) { request->mutable_restore_checkpoint()->set_name(name); });
}

Expected<node::CommandId> RemoteNodeImpl::undo_restore() {
  return run_command([](v1::CommandRequest* request) { request->mutable_undo_restore(); });
}

Expected<node::CommandId> RemoteNodeImpl::verify_checkpoint(const std::string& name) {
  return run_command(
      [&](v1::CommandRequest* request) { request->mutable_verify_checkpoint()->set_name(name); });
}

Expected<node::CommandId> RemoteNodeImpl::compare_checkpoints(const std::string& first,
                                                              const std::string& second) {
  return run_command([&](v1::CommandRequest* request) {
    request->mutable_compare_checkpoints()->set_first(first);
    request->mutable_compare_checkpoints()->set_second(second);
  });
}

Expected<node::CommandId> RemoteNodeImpl::pin_checkpoint(const std::string& name, bool pinned) {
  return run_command([&](v1::CommandRequest* request) {
    request->mutable_pin_checkpoint()->set_name(name);
    request->mutable_pin_checkpoint()->set_pinned(pinned);
  });
}

Expected<node::CommandId> RemoteNodeImpl::delete_checkpoint(const std::string& name) {
  return run_command(
      [&](v1::CommandRequest* request) { request->mutable_delete_checkpoint()->set_name(name); });
}

Expected<node::CommandId> RemoteNodeImpl::prune_checkpoints(const node::PrunePolicy& policy) {
  return run_command(
      [&](v1::CommandRequest* request) { encode(policy, request->mutable_prune_checkpoints()); });
}

Expected<node::CommandId> RemoteNodeImpl::export_checkpoint(const std::string& name,
                                                            const std::string& format,
                                                            const std::string& path) {
  return run_command([&](v1::CommandRequest* request) {
    request->mutable_export_checkpoint()->set_name(name);
    request->mutable_export_checkpoint()->set_format(format);
    request->mutable_export_checkpoint()->set_path(path);
  });
}

Expected<node::CommandId> RemoteNodeImpl::import_checkpoint(const std::string& path) {
  return run_command(
      [&](v1::CommandRequest* request) { request->mutable_import_checkpoint()->set_path(path); });
}

Expected<node::CommandId> RemoteNodeImpl::generate(const node::GenerateRequest& request,
                                                   std::function<void(std::string)> on_text) {
  if (request.prompt.size() > node::max_prompt_bytes)
    return make_error(ErrorCode::InvalidArgument, "the prompt is too long: at most 64 KiB are read");
  return run_command([&](v1::CommandRequest* sent) { encode(request, sent->mutable_generate()); },
                     std::move(on_text));
}

Expected<node::CommandId> RemoteNodeImpl::set_setting(const std::string& name, const std::string& value) {
  return command([&](v1::CommandRequest* request) {
    request->mutable_set_setting()->set_name(name);
    request->mutable_set_setting()->set_value(value);
  });
}

Expected<node::CommandId> RemoteNodeImpl::request_shutdown() {
  return command([](v1::CommandRequest* request) { request->mutable_shutdown(); });
}

Expected<void> RemoteNodeImpl::query_series(const node::SeriesQuery& query, node::Reply<node::Series> reply) {
  v1::SeriesQuery request;
  request.set_name(query.name);
  request.set_from_step(query.from_step);
  request.set_to_step(query.to_step);
  request.set_buckets(static_cast<std::uint32_t>(query.buckets));
  return ask<v1::SeriesReply>(request, std::move(reply), &v1::Control::Stub::async::QuerySeries);
}

Expected<void> RemoteNodeImpl::query_logs(const node::LogQuery& query, node::Reply<node::LogPage> reply) {
  v1::LogQuery request;
  request.set_after(query.after);
  request.set_limit(static_cast<std::uint32_t>(query.limit));
  request.set_least(static_cast<std::uint32_t>(query.least));
  return ask<v1::LogPage>(request, std::move(reply), &v1::Control::Stub::async::QueryLogs);
}

Expected<void> RemoteNodeImpl::query_checkpoints(const node::CheckpointQuery& query,
                                                 node::Reply<node::CheckpointPage> reply) {
  v1::CheckpointQuery request;
  request.set_after(query.after);
  request.set_limit(static_cast<std::uint32_t>(query.limit));
  return ask<v1::CheckpointPage>(request, std::move(reply), &v1::Control::Stub::async::QueryCheckpoints);
}

Expected<void> RemoteNodeImpl::query_prune(const node::PrunePolicy& policy,
                                           node::Reply<node::PrunePreview> reply) {
  v1::PrunePolicy request;
  encode(policy, &request);
  return ask<v1::PrunePreview>(request, std::move(reply), &v1::Control::Stub::async::QueryPrune);
}

Expected<void> RemoteNodeImpl::query_slots(node::Reply<std::vector<node::SlotEntry>> reply) {
  return ask<v1::SlotList>(v1::SlotsQuery(), std::move(reply), &v1::Control::Stub::async::QuerySlots);
}

Expected<void> RemoteNodeImpl::query_experts(node::Reply<std::vector<node::ExpertLoad>> reply) {
  return ask<v1::ExpertList>(v1::ExpertsQuery(), std::move(reply), &v1::Control::Stub::async::QueryExperts);
}

Expected<void> RemoteNodeImpl::query_data(node::Reply<node::DataView> reply) {
  return ask<v1::Data>(v1::DataQuery(), std::move(reply), &v1::Control::Stub::async::QueryData);
}

Expected<void> RemoteNodeImpl::query_rounds(node::Reply<node::RoundsReport> reply) {
  return ask<v1::RoundsReport>(v1::RoundsQuery(), std::move(reply), &v1::Control::Stub::async::QueryRounds);
}

Expected<void> RemoteNodeImpl::query_network(node::Reply<node::NetworkView> reply) {
  return ask<v1::Network>(v1::NetworkQuery(), std::move(reply), &v1::Control::Stub::async::QueryNetwork);
}

Expected<void> RemoteNodeImpl::test_reachability() {
  NS_ASSIGN_OR_RETURN(const auto link, current_link());
  auto call = std::make_shared<Call<v1::ReachabilityTest, v1::ReachabilityTestReply>>();
  call->link = link;
  link->sign(&call->context);
  call->context.set_deadline(after(short_limit));
  if (!enter(&call->context, call)) return make_error(ErrorCode::Cancelled, "the connection is being closed");
  link->stub->async()->TestReachability(
      &call->context, &call->request, &call->reply,
      [this, raw = call.get()](const grpc::Status&) { leave(&raw->context); });
  return {};
}

Expected<void> RemoteNodeImpl::query_tokens(const std::string& text,
                                            node::Reply<std::vector<node::TokenPiece>> reply) {
  if (text.size() > node::max_token_text)
    return make_error(ErrorCode::InvalidArgument, "the text is too long: at most 4 KiB are taken apart");
  v1::TokensQuery request;
  request.set_text(text);
  return ask<v1::TokenList>(request, std::move(reply), &v1::Control::Stub::async::QueryTokens);
}

Expected<void> RemoteNodeImpl::query_settings(node::Reply<std::vector<node::SettingEntry>> reply) {
  return ask<v1::SettingList>(v1::SettingsQuery(), std::move(reply),
                              &v1::Control::Stub::async::QuerySettings);
}

}  // namespace neuroshard::control::detail
