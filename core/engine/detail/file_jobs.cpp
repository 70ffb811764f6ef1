#include "core/engine/detail/file_jobs.h"

#include <optional>
#include <utility>

namespace neuroshard::engine::detail {
namespace {

constexpr std::size_t queue = 16;
constexpr Duration progress_period = std::chrono::milliseconds(100);

}  // namespace

FileJobs::FileJobs(const EngineContext& context)
    : context_(context), thread_(make_thread_executor("ns-files", queue)) {}

Expected<node::CommandId> FileJobs::accept(std::string activity, Work work) {
  return context_.commands.accept(
      [this, activity = std::move(activity), work = std::move(work)](node::CommandId id) {
        start(id, activity, work, [this, id](Expected<node::CommandResult> outcome) {
          if (!outcome.ok()) return context_.commands.done(id, outcome.error());
          context_.commands.done(id, std::nullopt, std::move(*outcome));
        });
      });
}

void FileJobs::start(node::CommandId id, const std::string& activity, Work work, Then then) {
  const auto item = std::make_shared<const Item>(
      Item{id, activity, context_.commands.make_cancellable(id), std::move(work), std::move(then)});
  if (thread_->post([this, item] { run(item); })) return;
  context_.commands.end_cancellable(id);
  item->then(make_error(ErrorCode::Busy, "too many checkpoint commands are waiting; try again later"));
}

void FileJobs::run(const std::shared_ptr<const Item>& item) {
  Expected<node::CommandResult> outcome = item->cancel.cancelled()
                                              ? make_error(ErrorCode::Cancelled, "cancelled before it began")
                                              : item->work({item->cancel, progress_of(*item)});
  context_.arrivals.put([this, item, outcome = std::move(outcome)] { finish(*item, outcome); });
}

void FileJobs::finish(const Item& item, Expected<node::CommandResult> outcome) {
  context_.commands.end_cancellable(item.id);
  item.then(std::move(outcome));
  context_.jobs.advance();
}

checkpoint::Progress FileJobs::progress_of(const Item& item) {
  auto reported = std::make_shared<std::optional<MonotonicTime>>();
  return [this, id = item.id, activity = item.activity, reported](std::uint64_t done, std::uint64_t total) {
    const MonotonicTime now = context_.services.clock.monotonic_now();
    if (*reported && now - **reported < progress_period) return;
    *reported = now;
    // Lost when the queue is full: the next report has newer numbers.
    static_cast<void>(context_.core.post([this, event = node::CommandProgress{id, activity, done, total}] {
      context_.publisher.emit(event);
    }));
  };
}

}  // namespace neuroshard::engine::detail
