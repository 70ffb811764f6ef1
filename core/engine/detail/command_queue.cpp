#include "core/engine/detail/command_queue.h"

#include <utility>

#include "core/engine/engine.h"

namespace neuroshard::engine::detail {
namespace {

Error shutting_down_error() {
  return make_error(ErrorCode::Cancelled, "the node is shutting down");
}

Error too_busy() {
  return make_error(ErrorCode::Busy, "the node is busy; try again in a moment");
}

}  // namespace

CommandQueue::CommandQueue(Executor& core, net::Mailbox& arrivals, JobScheduler& jobs,
                           SnapshotPublisher& publisher)
    : core_(core), arrivals_(arrivals), jobs_(jobs), publisher_(publisher) {}

Expected<void> CommandQueue::check_open() const {
  if (refusing_.load()) return shutting_down_error();
  return {};
}

Expected<node::CommandId> CommandQueue::accept(Effect effect) {
  NS_RETURN_IF_ERROR(check_open());
  if (open_.fetch_add(1) >= max_open_commands) {
    open_.fetch_sub(1);
    return make_error(ErrorCode::Busy, "too many commands are in progress; try again in a moment");
  }
  const node::CommandId id = next_id_.fetch_add(1);
  if (core_.post([this, id, effect = std::move(effect)] { run(id, effect); })) return id;
  open_.fetch_sub(1);
  return too_busy();
}

void CommandQueue::run(node::CommandId id, const Effect& effect) {
  if (shutting_down_) return done(id, shutting_down_error());
  effect(id);
  jobs_.advance();
}

Expected<node::CommandId> CommandQueue::accept_shutdown(Effect effect) {
  if (refusing_.exchange(true)) return make_error(ErrorCode::Cancelled, "the node is shutting down already");
  open_.fetch_add(1);
  const node::CommandId id = next_id_.fetch_add(1);
  const auto task = [this, id, effect = std::move(effect)] { run_shutdown(id, effect); };
  // Straight to the executor if it has room: the mailbox could run the effect on the caller's thread.
  if (!core_.post(task)) arrivals_.put(task);
  return id;
}

void CommandQueue::run_shutdown(node::CommandId id, const Effect& effect) {
  shutting_down_ = true;
  for (auto& [command, source] : cancellable_) source.cancel();
  effect(id);
  jobs_.advance();
}

Expected<void> CommandQueue::ask(std::function<void()> question) {
  NS_RETURN_IF_ERROR(check_open());
  if (core_.post(std::move(question))) return {};
  return too_busy();
}

void CommandQueue::cancel(node::CommandId id) {
  static_cast<void>(core_.post([this, id] {
    const auto at = cancellable_.find(id);
    if (at != cancellable_.end()) at->second.cancel();
  }));
}

void CommandQueue::done(node::CommandId id, std::optional<Error> error, node::CommandResult result) {
  open_.fetch_sub(1);
  publisher_.emit(node::CommandDone{id, std::move(error), std::move(result)});
}

void CommandQueue::done_all(CommandIds& ids, const std::optional<Error>& error) {
  for (const node::CommandId id : std::exchange(ids, {})) done(id, error);
}

}  // namespace neuroshard::engine::detail
