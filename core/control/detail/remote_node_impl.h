// RemoteNode: one thread that connects, follows, and connects again (remote_node.cpp); commands and queries
// are calls of their own whose answers come on gRPC's threads (remote_commands.cpp).
#pragma once

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <map>
#include <mutex>

#include "core/base/executor.h"
#include "core/control/detail/convert.h"
#include "core/control/detail/remote_link.h"
#include "core/node/subscribers.h"

namespace neuroshard::control::detail {

inline constexpr std::chrono::seconds query_limit{60};  // questions are answered between two training steps
inline constexpr std::size_t open_commands = 16;        // as the server's places for calls

class RemoteNodeImpl final : public RemoteNode {
 public:
  explicit RemoteNodeImpl(ConnectOptions options);
  ~RemoteNodeImpl() override;

  std::shared_ptr<const node::Snapshot> snapshot() const override;
  std::unique_ptr<node::Subscription> subscribe(node::EventHandler on_event) override;
  LinkView link() const override;
  std::unique_ptr<node::Subscription> watch_link(std::function<void()> on_change) override;
  Expected<void> wait_connected(Duration limit, const CancelToken& stop) override;

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
  using Context = grpc::ClientContext;
  // One call under way, kept alive by contexts_.
  template <class Request, class Message>
  struct Call {
    std::shared_ptr<const RemoteLink> link;
    Context context;
    Request request;
    Message reply;
  };
  class RunCall;  // a command that tells what happens on its way
  using Fill = std::function<void(v1::CommandRequest*)>;

  void run();               // worker: until destruction
  Expected<void> follow();  // worker: one connection; why it ended
  Expected<void> greet(const RemoteLink& link);
  Expected<void> watch(const std::shared_ptr<const RemoteLink>& link);
  void on_update(v1::Update* update, const std::shared_ptr<const RemoteLink>& link);
  void set_link(LinkState state, std::optional<Error> error);
  void publish(node::Snapshot snapshot);

  // Counts a call and makes it cancellable; false when the node ends.
  // The last reference to a channel must not go on a thread of gRPC's callbacks (it would join itself): calls
  // that are over are kept in spent_ and released by whoever comes next.
  bool enter(Context* context, std::shared_ptr<void> call = nullptr);
  void leave(Context* context);
  Expected<std::shared_ptr<const RemoteLink>> current_link() const;

  // A command that is answered once.
  Expected<node::CommandId> command(const Fill& fill);
  // A long one. on_text may be null.
  Expected<node::CommandId> run_command(const Fill& fill, std::function<void(std::string)> on_text = {});
  Expected<node::CommandId> take_command_place();
  void give_command_place_back();
  // The last thing of a command: reply is null when it failed.
  void on_done(node::CommandId id, const v1::CommandReply* reply, const grpc::Status& status);

  template <class Message, class T, class Request>
  Expected<void> ask(const Request& request, node::Reply<T> reply,
                     void (v1::Control::Stub::async::*method)(Context*, const Request*, Message*,
                                                              std::function<void(grpc::Status)>)) {
    NS_ASSIGN_OR_RETURN(const auto link, current_link());
    auto call = std::make_shared<Call<Request, Message>>();
    call->link = link;
    call->request = request;
    link->sign(&call->context);
    call->context.set_deadline(after(query_limit));
    if (!enter(&call->context, call))
      return make_error(ErrorCode::Cancelled, "the connection is being closed");
    (link->stub->async()->*method)(
        &call->context, &call->request, &call->reply,
        [this, raw = call.get(), reply = std::move(reply)](const grpc::Status& status) {
          if (status.ok()) {
            reply(decode(raw->reply));
          } else {
            reply(to_error(status));
          }
          leave(&raw->context);
        });
    return {};
  }

  const ConnectOptions options_;
  std::shared_ptr<node::Subscribers> subscribers_ = std::make_shared<node::Subscribers>();
  std::shared_ptr<node::Subscribers> link_watchers_ = std::make_shared<node::Subscribers>();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<const node::Snapshot> published_;
  LinkView view_;
  std::shared_ptr<const RemoteLink> link_;              // null unless connected
  std::map<Context*, std::shared_ptr<void>> contexts_;  // of calls under way, with what owns them
  std::vector<std::shared_ptr<void>> spent_;
  std::map<node::CommandId, RunCall*> runs_;  // commands that cancel() knows
  std::size_t calls_ = 0, open_commands_ = 0;
  node::CommandId next_command_ = 1;
  bool stopping_ = false;

  v1::Snapshot whole_;  // worker: the stream's, with fields that this build does not know

  std::unique_ptr<Executor> worker_;  // last: joined first
};

}  // namespace neuroshard::control::detail
