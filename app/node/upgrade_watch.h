// Ends a node whose program was replaced by an upgrade, so that it can go on as the new one.
#pragma once

#include <atomic>
#include <memory>

#include "core/base/executor.h"
#include "core/node/node.h"
#include "core/platform/process/program_file.h"

namespace neuroshard::app {

// Looks on a thread of its own while it lives.
class UpgradeWatch {
 public:
  static constexpr std::chrono::seconds period{3};

  // `node` outlives it.
  UpgradeWatch(platform::ProgramFile file, node::Node& node);
  // Whether it has asked the node to end. No: then somebody else did.  Threads: any.
  bool has_asked() const { return has_asked_; }

 private:
  void look();

  platform::ProgramFile file_;
  node::Node& node_;
  std::atomic<bool> has_asked_{false};
  std::unique_ptr<TimerHandle> timer_;  // goes after the thread that it belongs to
  std::unique_ptr<Executor> executor_;
};

}  // namespace neuroshard::app
