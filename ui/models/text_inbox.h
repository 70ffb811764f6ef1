// Text, and its tokens where they were asked for, that the core's threads put in and the UI thread takes out in
// batches. Bounded.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/node/generation.h"

namespace neuroshard::ui {

// Threads: any; the lock is held for copies only.
class TextInbox {
 public:
  static constexpr std::size_t max_tokens = node::max_generated_tokens;
  static constexpr std::size_t max_bytes = 1u << 20;  // an answer is at most 4096 tokens

  void put(const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (text_.size() + text.size() <= max_bytes) text_ += text;
  }
  void put(const node::TextPiece& piece) {
    put(piece.text);
    const std::lock_guard lock(mutex_);
    for (const node::GeneratedToken& token : piece.tokens)
      if (tokens_.size() < max_tokens) tokens_.push_back(token);
  }
  std::vector<node::GeneratedToken> take_tokens() {
    const std::lock_guard lock(mutex_);
    return std::exchange(tokens_, {});
  }
  std::string take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(text_, {});
  }

 private:
  std::mutex mutex_;
  std::string text_;
  std::vector<node::GeneratedToken> tokens_;
};

}  // namespace neuroshard::ui
