#include "core/net/mailbox.h"

#include <utility>

namespace neuroshard::net {
namespace {

constexpr Duration retry_period = std::chrono::milliseconds(20);

std::shared_ptr<Turn> turn_of(Executor& executor) {
  auto* const lender = dynamic_cast<TurnLender*>(&executor);
  return lender == nullptr ? nullptr : lender->turn();
}

}  // namespace

Mailbox::Mailbox(Executor& executor) : turn_(turn_of(executor)), executor_(&executor) {}

// False: the task has not run.
bool Mailbox::run_here(Executor::Task& task) {
  if (turn_ == nullptr) return false;
  {
    const std::lock_guard lock(mutex_);
    if (executor_ == nullptr || posted_ || !waiting_.empty()) return false;
  }
  return turn_->take([this, &task] {
    {  // closed by tasks of the executor only, so it stays as it is while this is one
      const std::lock_guard lock(mutex_);
      if (executor_ == nullptr) return;
    }
    const Executor::Task mine = std::exchange(task, nullptr);
    mine();
  });
}

void Mailbox::put(Executor::Task task) {
  const auto self = shared_from_this();  // the task may release it
  if (run_here(task)) return;
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
  std::unique_ptr<TimerHandle> timer;
  const std::lock_guard lock(mutex_);
  executor_ = nullptr;
  dropped.swap(waiting_);
  timer.swap(timer_);
}

void Mailbox::post_locked() {
  if (posted_) return;
  posted_ = executor_->post([self = shared_from_this()] { self->drain(); });
  if (!posted_ && !timer_)
    timer_ = executor_->post_after(retry_period, [self = shared_from_this()] { self->on_timer(); });
}

void Mailbox::on_timer() {
  std::unique_ptr<TimerHandle> over;
  const std::lock_guard lock(mutex_);
  over.swap(timer_);
  if (executor_ != nullptr && !waiting_.empty()) post_locked();
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
