// The commands that one RemoteNode has under way, and their outcomes. Ids are the client's own: the core's id
// of a command comes later, and only for commands that run for some time.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "core/control/detail/remote_session.h"

namespace neuroshard::control::detail {

// The session outlives it; destroyed after the session is closed.  Threads: any.
class RemoteCommands {
 public:
  explicit RemoteCommands(RemoteSession& session);
  // Closes the session: callbacks of commands run until then.
  ~RemoteCommands();

  // Both give the id at once; the outcome comes as CommandDone to the session's subscribers.
  // Errors: Unavailable without a connection, InvalidArgument if the request is too long, Busy if too many
  // commands are under way, Cancelled if the node ends.
  Expected<node::CommandId> send(const v1::CommandRequest& request);  // answered once
  // Reports progress on its way. on_text may be null; it runs on a thread of gRPC's.
  Expected<node::CommandId> run(const v1::CommandRequest& request, node::TextHandler on_text = {});
  // Asks the core to end a command of run() early; other ids are ignored.
  Expected<void> cancel(node::CommandId id);

 private:
  class RunCall;

  Expected<node::CommandId> take_place();
  void give_place_back();
  // Ends a command: reply is null when it failed.
  void on_done(node::CommandId id, const v1::CommandReply* reply, const grpc::Status& status);

  RemoteSession& session_;
  std::mutex mutex_;
  std::map<node::CommandId, RunCall*> runs_;
  std::size_t open_ = 0;
  node::CommandId next_ = 1;
};

}  // namespace neuroshard::control::detail
