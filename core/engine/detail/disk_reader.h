// Queries whose answer is on the disk: a separate thread reads it during the training, and the core executor
// replies.
//
// Threads: any. The thread that destroys the engine calls stop().
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "core/base/executor.h"
#include "core/engine/detail/command_queue.h"

namespace neuroshard::engine::detail {

class DiskReader {
 public:
  // Both outlive the reader.
  DiskReader(Executor& core, CommandQueue& commands);

  // `question` runs on the reading thread. Errors: Busy (the queue is full), Cancelled (the node shuts down).
  Expected<void> ask(std::function<void()> question);
  // The same from the core executor, for a query that was accepted before.  Errors: Busy.
  Expected<void> read(std::function<void()> question);
  // Replies on the core executor. A full queue drops the reply: the caller keeps its old value.
  template <class T>
  void answer(const node::Reply<T>& reply, Expected<T> answer) {
    static_cast<void>(core_.post([reply, answer = std::move(answer)] { reply(answer); }));
  }
  // Joins the reading thread.
  void stop() { thread_.reset(); }

 private:
  Executor& core_;
  CommandQueue& commands_;
  std::unique_ptr<Executor> thread_;
};

}  // namespace neuroshard::engine::detail
