// The queue between the core's threads and the UI thread. Bounded: the latest of a kind replaces the one
// before, and outcomes are kept only for open commands of this program.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "core/node/events.h"

namespace neuroshard::ui {

// Threads: any; the lock is held for copies only.
class BridgeInbox {
 public:
  static constexpr std::size_t max_waiting = 512;  // beyond it the oldest go, outcomes excepted

  // From the core's threads.
  void put(const node::Event& event);
  // From the UI thread: everything that waits, in the order in which it came.
  std::vector<node::Event> take();

  // Outcomes are kept for commands between begin_call() and take(), and for those named with expect().
  void begin_call();
  void end_call(std::optional<node::CommandId> accepted);

  std::size_t waiting() const;

 private:
  bool wanted(node::CommandId id) const { return calling_ || open_.count(id) != 0; }

  mutable std::mutex mutex_;
  std::vector<node::Event> waiting_;
  std::set<node::CommandId> open_;
  bool calling_ = false;
};

}  // namespace neuroshard::ui
