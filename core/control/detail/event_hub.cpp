#include "core/control/detail/event_hub.h"

#include <algorithm>

namespace neuroshard::control::detail {
namespace {

constexpr std::size_t kept_outcomes = 256;  // four times what a node has open

// Latest-wins: who misses one reads the snapshot.
bool is_step(const node::Event& event) {
  return std::holds_alternative<node::StepFinished>(event) ||
         std::holds_alternative<node::ActivityProgress>(event);
}

}  // namespace

EventHub::EventHub(node::Node& node, const ServerLimits& limits) : limits_(limits) {
  subscription_ = node.subscribe([this](const node::Event& event) { on_event(event); });
}

void EventHub::on_event(const node::Event& event) {
  const bool step = is_step(event);
  {
    std::lock_guard lock(mutex_);
    const auto* done = std::get_if<node::CommandDone>(&event);
    if (done != nullptr || std::holds_alternative<node::CommandProgress>(event)) {
      for (const auto& feed : feeds_) feed->add(event);
      if (done != nullptr) done_.push_back(*done);
      if (done_.size() > kept_outcomes) done_.pop_front();
    } else {
      for (Watcher* watcher : watchers_) push(*watcher, event, step);
    }
  }
  if (!step) changed_.notify_all();
}

void EventHub::push(Watcher& watcher, const node::Event& event, bool step) {
  if (!watcher.wants_events_ || watcher.too_slow_) return;
  if (step) {
    if (watcher.steps_ >= limits_.steps) {
      watcher.waiting_.erase(std::find_if(watcher.waiting_.begin(), watcher.waiting_.end(), is_step));
      --watcher.steps_;
      ++watcher.dropped_;
    }
    ++watcher.steps_;
  } else {
    if (watcher.waiting_.size() - watcher.steps_ >= limits_.events) {
      watcher.too_slow_ = true;
      watcher.waiting_.clear();
      watcher.steps_ = 0;
      return;
    }
    watcher.urgent_ = true;
  }
  watcher.waiting_.push_back(event);
}

void EventHub::Feed::add(const node::Event& event) {
  const std::lock_guard lock(mutex_);
  if (const auto* progress = std::get_if<node::CommandProgress>(&event); progress && progress->id == id_) {
    waiting_.progress = *progress;
  } else if (const auto* done = std::get_if<node::CommandDone>(&event); done && done->id == id_) {
    waiting_.done = *done;
  } else {
    return;
  }
  changed_.notify_all();
}

void EventHub::Feed::add_piece(node::TextPiece piece) {
  const std::lock_guard lock(mutex_);
  // Both are bounded by what a generate() may write.
  if (piece.tokens.empty() && !piece.of_prompt && waiting_.pieces.empty())
    waiting_.text += piece.text;
  else
    waiting_.pieces.push_back(std::move(piece));
  changed_.notify_all();
}

EventHub::Feed::Batch EventHub::Feed::wait_and_take(Duration limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [this] {
    return waiting_.done || waiting_.progress || !waiting_.text.empty() || !waiting_.pieces.empty();
  });
  return std::exchange(waiting_, {});
}

void EventHub::follow(const std::shared_ptr<Feed>& feed, node::CommandId id) {
  const std::lock_guard lock(mutex_);
  feeds_.push_back(feed);
  {
    const std::lock_guard feed_lock(feed->mutex_);
    feed->id_ = id;
  }
  for (const node::CommandDone& done : done_) feed->add(done);
}

void EventHub::forget(const std::shared_ptr<Feed>& feed) {
  const std::lock_guard lock(mutex_);
  feeds_.remove(feed);
}

EventHub::Watcher::Watcher(EventHub& hub, bool wants_events) : hub_(hub), wants_events_(wants_events) {
  std::lock_guard lock(hub_.mutex_);
  hub_.watchers_.push_back(this);
}

EventHub::Watcher::~Watcher() {
  std::lock_guard lock(hub_.mutex_);
  hub_.watchers_.remove(this);
}

EventHub::Batch EventHub::Watcher::take() {
  std::lock_guard lock(hub_.mutex_);
  Batch batch;
  batch.events.assign(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(waiting_.end()));
  waiting_.clear();
  steps_ = 0;
  urgent_ = false;
  batch.dropped_steps = dropped_;
  batch.too_slow = too_slow_;
  return batch;
}

void EventHub::Watcher::wait(Duration limit) {
  std::unique_lock lock(hub_.mutex_);
  hub_.changed_.wait_for(lock, limit, [this] { return urgent_ || too_slow_ || hub_.stopping_; });
}

std::optional<node::CommandDone> EventHub::wait_done(node::CommandId id, Duration limit) {
  std::unique_lock lock(mutex_);
  std::optional<node::CommandDone> found;
  changed_.wait_for(lock, limit, [&] {
    const auto at = std::find_if(done_.begin(), done_.end(),
                                 [id](const node::CommandDone& done) { return done.id == id; });
    if (at != done_.end()) found = *at;
    return found.has_value() || stopping_;
  });
  return found;
}

void EventHub::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
}

bool EventHub::stopping() const {
  std::lock_guard lock(mutex_);
  return stopping_;
}

}  // namespace neuroshard::control::detail
