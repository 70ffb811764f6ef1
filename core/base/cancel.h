// Cancellation by token: the owner of a CancelSource asks, the worker looks at its CancelToken between pieces
// of work.
#pragma once

#include <atomic>
#include <memory>

namespace neuroshard {

// Threads: any. Copies share one flag. A default token is never cancelled.
class CancelToken {
 public:
  CancelToken() = default;
  bool cancelled() const { return flag_ && flag_->load(std::memory_order_relaxed); }

 private:
  friend class CancelSource;
  explicit CancelToken(std::shared_ptr<const std::atomic<bool>> flag) : flag_(std::move(flag)) {}
  std::shared_ptr<const std::atomic<bool>> flag_;
};

class CancelSource {
 public:
  CancelSource() : flag_(std::make_shared<std::atomic<bool>>(false)) {}
  void cancel() { flag_->store(true, std::memory_order_relaxed); }
  CancelToken token() const { return CancelToken(flag_); }

 private:
  std::shared_ptr<std::atomic<bool>> flag_;
};

}  // namespace neuroshard
