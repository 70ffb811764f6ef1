#include "core/control/detail/remote_commands.h"

#include "core/control/detail/call_rules.h"

namespace neuroshard::control::detail {
namespace {

constexpr std::chrono::seconds cancel_limit{10};
constexpr std::size_t max_open_commands = 16;  // as the places for calls of the server

Error command_error(const grpc::Status& status) {
  Error error = to_error(status);
  if (!status.error_details().empty()) return error;
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    return make_error(
        ErrorCode::Unsupported,
        "the running core is older and does not know this command: stop it and start the installed, "
        "newer one");
  }
  error.message += "; it is not known whether the command was done";
  return error;
}

Expected<void> check_length(const v1::CommandRequest& request) {
  // The rest of the limit is more than gRPC adds.
  if (request.ByteSizeLong() <= static_cast<std::size_t>(max_request_bytes - max_metadata_bytes)) return {};
  return make_error(ErrorCode::InvalidArgument, "the command is too long");
}

}  // namespace

RemoteCommands::RemoteCommands(RemoteSession& session) : session_(session) {}

RemoteCommands::~RemoteCommands() {
  session_.close();
}

Expected<node::CommandId> RemoteCommands::take_place() {
  std::lock_guard lock(mutex_);
  if (open_ >= max_open_commands)
    return make_error(ErrorCode::Busy, "too many commands are under way; try again in a moment");
  ++open_;
  return next_++;
}

void RemoteCommands::give_place_back() {
  std::lock_guard lock(mutex_);
  --open_;
}

void RemoteCommands::on_done(node::CommandId id, const v1::CommandReply* reply, const grpc::Status& status) {
  node::CommandDone done{id, std::nullopt, {}};
  if (status.ok() && reply != nullptr) {
    // So that the snapshot is never older than the outcome.
    if (reply->has_snapshot()) session_.publish(decode(reply->snapshot()));
    done.result = decode_result(*reply);
  } else {
    done.error =
        status.ok() ? make_error(ErrorCode::Internal, "the core gave no outcome") : command_error(status);
  }
  give_place_back();
  session_.subscribers().emit(done);
}

Expected<node::CommandId> RemoteCommands::send(const v1::CommandRequest& request) {
  NS_ASSIGN_OR_RETURN(auto link, session_.link());
  NS_RETURN_IF_ERROR(check_length(request));
  NS_ASSIGN_OR_RETURN(const node::CommandId id, take_place());
  const auto started = session_.call<v1::CommandRequest, v1::CommandReply>(
      std::move(link), request, std::nullopt, &AsyncControl::Command,
      [this, id](const grpc::Status& status, const v1::CommandReply& reply) { on_done(id, &reply, status); });
  if (started.ok()) return id;
  give_place_back();
  return started.error();
}

// Its methods run on gRPC's threads, one at a time.
class RemoteCommands::RunCall final : public grpc::ClientReadReactor<v1::CommandUpdate> {
 public:
  RunCall(RemoteCommands& owner, std::shared_ptr<const RemoteLink> link, node::TextHandler on_text)
      : owner_(owner), link_(std::move(link)), on_text_(std::move(on_text)) {
    link_->sign(&context);
  }

  grpc::ClientContext context;
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
        owner_.session_.subscribers().emit(progress);
        break;
      }
      case v1::CommandUpdate::kText:
        if (on_text_) on_text_({update_.text(), {}, false});
        break;
      case v1::CommandUpdate::kPiece:
        if (on_text_) on_text_(decode(update_.piece()));
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
    owner_.session_.calls().leave(&context);  // the last line: this may be gone afterwards
  }

  // Under the owner's lock. Returns the core's id of this command, to cancel it. Nothing: the core has not
  // sent the id yet, and the command is cancelled when it comes.
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

  RemoteCommands& owner_;
  std::shared_ptr<const RemoteLink> link_;
  node::TextHandler on_text_;
  node::CommandId id_ = 0;
  v1::CommandUpdate update_;
  v1::CommandReply reply_;
  bool done_ = false;
  std::optional<node::CommandId> core_id_;  // guarded by the owner's mutex, as the next
  bool cancel_wanted_ = false;
};

Expected<node::CommandId> RemoteCommands::run(const v1::CommandRequest& request, node::TextHandler on_text) {
  NS_ASSIGN_OR_RETURN(auto link, session_.link());
  NS_RETURN_IF_ERROR(check_length(request));
  auto call = std::make_shared<RunCall>(*this, std::move(link), std::move(on_text));
  call->request = request;
  NS_ASSIGN_OR_RETURN(const node::CommandId id, take_place());
  if (!session_.calls().enter(&call->context, call)) {
    give_place_back();
    return make_error(ErrorCode::Cancelled, "the connection is being closed");
  }
  {
    std::lock_guard lock(mutex_);
    runs_[id] = call.get();
  }
  call->start(id);
  return id;
}

Expected<void> RemoteCommands::cancel(node::CommandId id) {
  v1::CancelRequest request;
  {
    std::lock_guard lock(mutex_);
    const auto at = runs_.find(id);
    if (at == runs_.end()) return {};
    const auto core_id = at->second->want_cancel();
    if (!core_id) return {};
    request.set_id(*core_id);
  }
  NS_ASSIGN_OR_RETURN(auto link, session_.link());
  return session_.call<v1::CancelRequest, v1::CancelReply>(
      std::move(link), std::move(request), cancel_limit, &AsyncControl::Cancel,
      [](const grpc::Status&, const v1::CancelReply&) {});
}

}  // namespace neuroshard::control::detail
