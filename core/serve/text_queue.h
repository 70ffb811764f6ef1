// Texts that HTTP clients wait for. A node generates some at once; the others wait here in the order in
// which they came, and beyond a bound none is accepted.
//
// Threads: the server's, apart from the node's calls, which enqueue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>

#include "core/base/expected.h"
#include "core/node/node.h"

namespace neuroshard::serve {

inline constexpr std::size_t max_texts_running = 12;  // a node takes 16: four are left to its person
inline constexpr std::size_t max_texts_waiting = 32;

class TextQueue {
 public:
  // Runs a task on the server's thread, or drops it when the server has ended.  Threads: any.
  using Post = std::function<void(std::function<void()>)>;
  struct Handler {
    std::function<void(node::TextPiece)> on_piece;
    std::function<void(Expected<node::GenerateResult>)> on_done;  // once, the last call
  };

  // The node outlives the queue.
  TextQueue(node::Node& node, Post post);
  TextQueue(const TextQueue&) = delete;
  TextQueue& operator=(const TextQueue&) = delete;

  // A ticket; 0: the queue is full. The handler runs later, never inside this call.
  std::uint64_t add(node::GenerateRequest request, Handler handler);
  // The handler is not called any more, and the text ends.
  void cancel(std::uint64_t ticket);

  std::size_t running() const { return running_.size(); }
  std::size_t waiting() const { return waiting_.size(); }

 private:
  struct Text {
    std::uint64_t ticket = 0;
    node::GenerateRequest request;
    Handler handler;
    node::CommandId command = 0;
    bool dropped = false;  // nobody waits for it; the node still ends it
  };
  void start_next();
  void start(Text text);
  void on_piece(std::uint64_t ticket, node::TextPiece piece);
  void on_done(const node::CommandDone& done);

  node::Node& node_;
  const Post post_;
  std::deque<Text> waiting_;
  std::map<std::uint64_t, Text> running_;
  std::uint64_t next_ = 1;
  std::unique_ptr<node::Subscription> subscription_;  // last: ends first
};

}  // namespace neuroshard::serve
