// A queue that hands a node's events from its core thread to another thread.
//
// Threads: next() from one thread, dropped_steps() from any. Errors: none.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "core/base/clock.h"
#include "core/node/node.h"

namespace neuroshard::runtime {

// The most events in the queue. Beyond it the oldest steps are dropped and counted, so a slow reader loses
// lines and never slows the training. Other events are kept.
inline constexpr std::size_t max_waiting_events = 65'536;

class EventQueue {
 public:
  // Subscribes to the node, which outlives the queue.
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

}  // namespace neuroshard::runtime
