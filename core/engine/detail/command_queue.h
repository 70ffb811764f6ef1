// Passes commands from any thread to the core executor: counts them, refuses new ones above a limit, and
// reports when each is done. Also tracks which commands are long enough to be cancelled.
//
// Threads: accept(), accept_shutdown(), ask(), check_open() and cancel() from any thread; the rest on the
// core executor. Effects and queries run on the core executor.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "core/base/cancel.h"
#include "core/base/executor.h"
#include "core/engine/detail/job_scheduler.h"
#include "core/engine/detail/snapshot_publisher.h"
#include "core/net/mailbox.h"
#include "core/node/node.h"

namespace neuroshard::engine::detail {

using CommandIds = std::vector<node::CommandId>;

class CommandQueue {
 public:
  using Effect = std::function<void(node::CommandId)>;

  // All outlive the queue.
  CommandQueue(Executor& core, net::Mailbox& arrivals, JobScheduler& jobs, SnapshotPublisher& publisher);

  // Runs the effect and then starts the next job. Errors: Busy (too many commands are in progress, or the
  // executor's queue is full), Cancelled (the node shuts down).
  Expected<node::CommandId> accept(Effect effect);
  // The last command: the queue refuses all later ones. A full queue accepts it too. Cancelled: the queue has
  // accepted a shutdown before.
  Expected<node::CommandId> accept_shutdown(Effect effect);
  // A query that needs no command. Errors as for accept().
  Expected<void> ask(std::function<void()> question);
  // Cancelled once a shutdown was accepted.
  Expected<void> check_open() const;
  // Ignores unknown ids.
  void cancel(node::CommandId id);

  // Every accepted command ends with one of these.
  void done(node::CommandId id, std::optional<Error> error = std::nullopt, node::CommandResult result = {});
  void done_all(CommandIds& ids, const std::optional<Error>& error = std::nullopt);  // empties ids

  // From make_cancellable() to end_cancellable() the command obeys cancel().
  CancelToken make_cancellable(node::CommandId id) { return cancellable_[id].token(); }
  void end_cancellable(node::CommandId id) { cancellable_.erase(id); }
  bool has_cancellable() const { return !cancellable_.empty(); }

  // The effect of the shutdown has begun: no new work starts.
  bool shutting_down() const { return shutting_down_; }

 private:
  void run(node::CommandId id, const Effect& effect);
  void run_shutdown(node::CommandId id, const Effect& effect);

  Executor& core_;
  net::Mailbox& arrivals_;
  JobScheduler& jobs_;
  SnapshotPublisher& publisher_;

  std::atomic<std::uint64_t> next_id_{1};
  std::atomic<std::size_t> open_{0};
  std::atomic<bool> refusing_{false};

  bool shutting_down_ = false;
  std::map<node::CommandId, CancelSource> cancellable_;
};

}  // namespace neuroshard::engine::detail
