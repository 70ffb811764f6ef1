// Texts that HTTP clients wait for. A node generates a few at a time; the others wait here. A free place goes to the
// client that has the fewest running, then to the one that was served longest ago. The last place is kept for a
// client that has none, so that one client's texts can't keep all others out.
//
// Threads: the server's, apart from the node's calls, which enqueue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/base/expected.h"
#include "core/node/node.h"

namespace neuroshard::serve {

inline constexpr std::size_t max_texts_waiting = 64;

class TextQueue {
 public:
  // Runs a task on the server's thread, or drops it when the server has ended.  Threads: any.
  using Post = std::function<void(std::function<void()>)>;
  struct Handler {
    std::function<void(node::TextPiece)> on_piece;
    std::function<void(Expected<node::GenerateResult>)> on_done;  // once, the last call
  };

  // The node outlives the queue. most_running: texts that the node generates at once, at least 2.
  TextQueue(node::Node& node, Post post, std::size_t most_running);
  TextQueue(const TextQueue&) = delete;
  TextQueue& operator=(const TextQueue&) = delete;

  // A further request is too much.
  bool is_full() const { return waiting_.size() >= max_texts_waiting; }
  // A ticket. The handler runs later, never inside this call. client: whose text it is.
  std::uint64_t add(const std::string& client, node::GenerateRequest request, Handler handler);
  // The handler is not called any more, and the text ends.
  void cancel(std::uint64_t ticket);

  std::size_t running() const { return running_.size(); }
  std::size_t waiting() const { return waiting_.size(); }

 private:
  struct Text {
    std::uint64_t ticket = 0;
    std::string client;
    node::GenerateRequest request;
    Handler handler;
    node::CommandId command = 0;
    bool dropped = false;  // nobody waits for it; the node still ends it
  };
  std::deque<Text>::iterator next_waiting();
  std::size_t running_of(const std::string& client) const;
  void forget_idle_clients();
  void start_next();
  void start(Text text);
  void on_piece(std::uint64_t ticket, node::TextPiece piece);
  void on_done(const node::CommandDone& done);

  node::Node& node_;
  const Post post_;
  const std::size_t most_running_;
  std::deque<Text> waiting_;
  std::map<std::uint64_t, Text> running_;
  std::map<std::string, std::uint64_t> served_;  // the last ticket of each client that has texts here
  std::uint64_t next_ = 1;
  std::unique_ptr<node::Subscription> subscription_;  // last: ends first
};

}  // namespace neuroshard::serve
