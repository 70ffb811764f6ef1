#include "core/runtime/event_queue.h"

#include <algorithm>

namespace neuroshard::runtime {

EventQueue::EventQueue(node::Node& node) {
  subscription_ = node.subscribe([this](const node::Event& event) {
    {
      std::lock_guard lock(mutex_);
      if (events_.size() >= max_waiting_events) {
        const auto step = std::find_if(events_.begin(), events_.end(), [](const node::Event& waiting) {
          return std::holds_alternative<node::StepFinished>(waiting);
        });
        if (step != events_.end()) {
          events_.erase(step);
          ++dropped_;
        }
      }
      events_.push_back(event);
    }
    arrived_.notify_one();
  });
}

std::optional<node::Event> EventQueue::next(Duration limit) {
  std::unique_lock lock(mutex_);
  if (!arrived_.wait_for(lock, limit, [this] { return !events_.empty(); })) return std::nullopt;
  node::Event event = std::move(events_.front());
  events_.pop_front();
  return event;
}

std::uint64_t EventQueue::dropped_steps() const {
  std::lock_guard lock(mutex_);
  return dropped_;
}

}  // namespace neuroshard::runtime
