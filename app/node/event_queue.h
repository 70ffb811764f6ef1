// A node's events, handed from its core thread to the command's own thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "core/base/clock.h"
#include "core/node/node.h"

namespace neuroshard::app {

// Events that wait. Steps beyond it are dropped, oldest first, and counted: a reader of standard output that
// is slower than training for that long loses lines, never the training. Everything else is kept.
inline constexpr std::size_t max_waiting_events = 65'536;

class EventQueue {
 public:
  // Subscribes; the node outlives the queue.
  explicit EventQueue(node::Node& node);

  // The next event; nothing after `limit`.
  std::optional<node::Event> next(Duration limit);
  std::uint64_t dropped_steps() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<node::Event> events_;
  std::uint64_t dropped_ = 0;
  std::unique_ptr<node::Subscription> subscription_;  // last: ends first
};

}  // namespace neuroshard::app
