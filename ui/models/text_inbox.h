// Text that the core's threads put in and the UI thread takes out in batches. Bounded.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <utility>

namespace neuroshard::ui {

// Threads: any; the lock is held for copies only.
class TextInbox {
 public:
  static constexpr std::size_t max_bytes = 1u << 20;  // an answer is at most 4096 tokens

  void put(const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (text_.size() + text.size() <= max_bytes) text_ += text;
  }
  std::string take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(text_, {});
  }

 private:
  std::mutex mutex_;
  std::string text_;
};

}  // namespace neuroshard::ui
