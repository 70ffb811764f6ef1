// Names of checkpoints that retention leaves alone for now, because other nodes are fetching them. Not on the
// disk: they end with the process. They do not stop a person from deleting a checkpoint.
//
// Threads: any.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace neuroshard::checkpoint {

class Holds {
 public:
  void set(std::set<std::string> names) {
    const std::lock_guard lock(mutex_);
    names_ = std::move(names);
  }
  std::set<std::string> names() const {
    const std::lock_guard lock(mutex_);
    return names_;
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::string> names_;
};

}  // namespace neuroshard::checkpoint
