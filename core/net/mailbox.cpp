#include "core/net/mailbox.h"

namespace neuroshard::net {

void Mailbox::put(Executor::Task task) {
  const std::lock_guard lock(mutex_);
  if (executor_ == nullptr) return;
  waiting_.push_back(std::move(task));
  post_locked();
}

void Mailbox::retry() {
  const std::lock_guard lock(mutex_);
  if (executor_ != nullptr && !waiting_.empty()) post_locked();
}

void Mailbox::close() {
  std::deque<Executor::Task> dropped;
  const std::lock_guard lock(mutex_);
  executor_ = nullptr;
  dropped.swap(waiting_);
}

void Mailbox::post_locked() {
  if (posted_) return;
  posted_ = executor_->post([self = shared_from_this()] { self->drain(); });
}

void Mailbox::drain() {
  constexpr int at_once = 32;  // then others have their turn
  for (int i = 0; i < at_once; ++i) {
    Executor::Task task;
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.empty() || executor_ == nullptr) {
        posted_ = false;
        return;
      }
      task = std::move(waiting_.front());
      waiting_.pop_front();
    }
    task();
  }
  const std::lock_guard lock(mutex_);
  posted_ = false;
  if (executor_ != nullptr && !waiting_.empty()) post_locked();
}

}  // namespace neuroshard::net
