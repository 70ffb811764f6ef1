// The subscribers of a node's events, for implementations of Node. Threads: any.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "core/node/node.h"

namespace neuroshard::node {

class Subscribers : public std::enable_shared_from_this<Subscribers> {
 public:
  std::unique_ptr<Subscription> add(EventHandler handler);
  // Calls every handler. A handler that unsubscribes inside its call would deadlock, as node.h says.
  void emit(const Event& event);

 private:
  class Handle;
  void remove(std::uint64_t id);

  std::mutex mutex_;
  std::uint64_t next_id_ = 1;
  std::map<std::uint64_t, EventHandler> handlers_;
};

}  // namespace neuroshard::node
