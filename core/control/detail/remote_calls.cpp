#include "core/control/detail/remote_calls.h"

namespace neuroshard::control::detail {

bool RemoteCalls::enter(grpc::ClientContext* context, std::shared_ptr<void> call) {
  std::vector<std::shared_ptr<void>> spent;  // released outside the lock
  std::lock_guard lock(mutex_);
  if (closed_) return false;
  spent.swap(spent_);
  under_way_[context] = std::move(call);
  return true;
}

void RemoteCalls::leave(grpc::ClientContext* context) {
  std::lock_guard lock(mutex_);
  const auto at = under_way_.find(context);
  if (at->second) spent_.push_back(std::move(at->second));
  under_way_.erase(at);
  left_.notify_all();  // under the lock: wait() returns to a destructor
}

void RemoteCalls::close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  for (const auto& [context, call] : under_way_) context->TryCancel();
}

void RemoteCalls::wait() {
  std::unique_lock lock(mutex_);
  left_.wait(lock, [this] { return under_way_.empty(); });
}

}  // namespace neuroshard::control::detail
