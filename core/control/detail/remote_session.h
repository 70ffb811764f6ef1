// The connection of one RemoteNode: a thread connects to the core, follows its snapshots and events, and
// connects again when the connection breaks. Holds the latest snapshot, the state of the link, and the
// subscribers.
#pragma once

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "core/base/executor.h"
#include "core/control/detail/convert.h"
#include "core/control/detail/remote_calls.h"
#include "core/control/detail/remote_link.h"
#include "core/node/subscribers.h"

namespace neuroshard::control::detail {

using AsyncControl = class v1::Control::Stub::async;  // the member function async() hides the class

// Threads: any, except where a member says otherwise.
class RemoteSession {
 public:
  explicit RemoteSession(ConnectOptions options);
  ~RemoteSession();

  // Cancels all calls, ends the thread, and waits until the last callback has run. Objects that start calls
  // outlive close(). Called once more by the destructor.
  void close();

  std::shared_ptr<const node::Snapshot> snapshot() const;
  // Keeps the newer of this snapshot and the current one: the snapshot of an answer may be ahead of the
  // stream.
  void publish(node::Snapshot snapshot);
  LinkView view() const;
  std::unique_ptr<node::Subscription> watch_view(std::function<void()> on_change);
  node::Subscribers& subscribers() { return *subscribers_; }
  RemoteCalls& calls() { return calls_; }

  // Unavailable while there is no connection, with the reason.
  Expected<std::shared_ptr<const RemoteLink>> link() const;

  template <class Request, class Message>
  using Method = void (AsyncControl::*)(grpc::ClientContext*, const Request*, Message*,
                                        std::function<void(grpc::Status)>);
  // Starts a call with one answer. `done` runs once on a thread of gRPC's, unless an error is returned.
  // Cancelled: the node ends.
  template <class Request, class Message>
  Expected<void> call(std::shared_ptr<const RemoteLink> link, Request request,
                      std::optional<std::chrono::seconds> limit, Method<Request, Message> method,
                      std::function<void(const grpc::Status&, const Message&)> done);

 private:
  template <class Request, class Message>
  struct Call {
    std::shared_ptr<const RemoteLink> link;
    grpc::ClientContext context;
    Request request;
    Message reply;
  };

  // On the thread of the session.
  void run();               // until close()
  Expected<void> follow();  // one connection; the error says why it ended
  Expected<void> greet(const RemoteLink& link);
  Expected<void> watch(const std::shared_ptr<const RemoteLink>& link);
  void on_update(v1::Update* update, const std::shared_ptr<const RemoteLink>& link);
  void set_view(LinkState state, std::optional<Error> error);

  const ConnectOptions options_;
  std::shared_ptr<node::Subscribers> subscribers_ = std::make_shared<node::Subscribers>();
  std::shared_ptr<node::Subscribers> view_watchers_ = std::make_shared<node::Subscribers>();
  RemoteCalls calls_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<const node::Snapshot> published_;
  LinkView view_;
  std::shared_ptr<const RemoteLink> link_;  // null unless connected
  bool stopping_ = false;

  // The stream's snapshot, with the fields that this build does not know. Of the session's thread.
  v1::Snapshot whole_;

  std::unique_ptr<Executor> worker_;  // last: joined first
};

template <class Request, class Message>
Expected<void> RemoteSession::call(std::shared_ptr<const RemoteLink> link, Request request,
                                   std::optional<std::chrono::seconds> limit, Method<Request, Message> method,
                                   std::function<void(const grpc::Status&, const Message&)> done) {
  auto call = std::make_shared<Call<Request, Message>>();
  call->link = std::move(link);
  call->request = std::move(request);
  call->link->sign(&call->context);
  if (limit) call->context.set_deadline(after(*limit));
  if (!calls_.enter(&call->context, call))
    return make_error(ErrorCode::Cancelled, "the connection is being closed");
  (call->link->stub->async()->*method)(&call->context, &call->request, &call->reply,
                                       [this, raw = call.get(), done = std::move(done)](grpc::Status status) {
                                         done(status, raw->reply);
                                         calls_.leave(&raw->context);
                                       });
  return {};
}

}  // namespace neuroshard::control::detail
