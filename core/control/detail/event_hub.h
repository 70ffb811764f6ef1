// A node's events for the calls of the service: a bounded queue for each watcher, and the outcomes of the
// newest commands.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/control/service.h"
#include "core/node/node.h"

namespace neuroshard::control::detail {

// Threads: any.
class EventHub {
 public:
  EventHub(node::Node& node, const ServerLimits& limits);

  struct Batch {
    std::vector<node::Event> events;
    std::uint64_t dropped_steps = 0;  // since the watcher came
    bool too_slow = false;            // more waited than may: the watcher has lost events
  };
  // One watcher's queue, while it lives.
  class Watcher {
   public:
    // wants_events false: wait() only waits, and nothing is kept.
    Watcher(EventHub& hub, bool wants_events);
    ~Watcher();
    Watcher(const Watcher&) = delete;
    Watcher& operator=(const Watcher&) = delete;
    Batch take();
    // Returns on an event that should not wait, on stop(), or after `limit`.
    void wait(Duration limit);

   private:
    friend class EventHub;
    EventHub& hub_;
    const bool wants_events_;
    std::deque<node::Event> waiting_;
    std::size_t steps_ = 0;  // of them
    bool urgent_ = false;
    std::uint64_t dropped_ = 0;
    bool too_slow_ = false;
  };

  // The progress of one command, for the call that sent it. Shared, because the node may still write
  // text when the call is over.
  class Feed {
   public:
    struct Batch {
      std::string text;                               // since the last take, of pieces without tokens
      std::vector<node::TextPiece> pieces;            // and of a text that has log-probabilities or an echo
      std::optional<node::CommandProgress> progress;  // the newest
      std::optional<node::CommandDone> done;          // the last batch has it
    };
    void add_piece(node::TextPiece piece);
    // Returns when there is something to take, or after `limit`.
    Batch wait_and_take(Duration limit);

   private:
    friend class EventHub;
    void add(const node::Event& event);
    std::mutex mutex_;
    std::condition_variable changed_;
    node::CommandId id_ = 0;
    Batch waiting_;
  };
  // To be asked at once after the command was accepted. Until forget().
  void follow(const std::shared_ptr<Feed>& feed, node::CommandId id);
  void forget(const std::shared_ptr<Feed>& feed);

  // The outcome of a command of this node: nothing when it did not come within `limit`. To be asked at once
  // after the command was accepted; only the newest outcomes are kept.
  std::optional<node::CommandDone> wait_done(node::CommandId id, Duration limit);

  // Every wait returns from now on.
  void stop();
  bool stopping() const;

 private:
  void on_event(const node::Event& event);
  void push(Watcher& watcher, const node::Event& event, bool is_step);

  const ServerLimits limits_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Watcher*> watchers_;
  std::deque<node::CommandDone> done_;
  std::list<std::shared_ptr<Feed>> feeds_;
  bool stopping_ = false;
  std::unique_ptr<node::Subscription> subscription_;  // last: ends first
};

}  // namespace neuroshard::control::detail
