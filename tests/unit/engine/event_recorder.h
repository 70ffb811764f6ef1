// The events of a node, in their order.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "core/node/node.h"

namespace neuroshard::testing {

// Collects events; waits without sleeping.
class EventRecorder {
 public:
  explicit EventRecorder(node::Node& node)
      : subscription_(node.subscribe([this](const node::Event& event) {
          std::lock_guard lock(mutex_);
          events_.push_back(event);
          arrived_.notify_all();
        })) {}

  // The first event of the kind from the current position that fits; what came before it is passed over.
  template <class Kind>
  std::optional<Kind> wait(const std::function<bool(const Kind&)>& fits = [](const Kind&) { return true; }) {
    std::unique_lock lock(mutex_);
    std::optional<Kind> found;
    arrived_.wait_for(lock, std::chrono::seconds(20), [&] {
      while (!events_.empty()) {
        const node::Event event = std::move(events_.front());
        events_.pop_front();
        const Kind* kind = std::get_if<Kind>(&event);
        if (kind == nullptr || !fits(*kind)) continue;
        found = *kind;
        return true;
      }
      return false;
    });
    return found;
  }
  std::optional<node::CommandDone> done(const Expected<node::CommandId>& id) {
    if (!id.ok()) return std::nullopt;
    return wait<node::CommandDone>([&](const node::CommandDone& event) { return event.id == *id; });
  }
  bool state(node::RunState state) {
    return wait<node::StateChanged>([state](const node::StateChanged& event) { return event.state == state; })
        .has_value();
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<node::Event> events_;
  std::unique_ptr<node::Subscription> subscription_;
};

}  // namespace neuroshard::testing
