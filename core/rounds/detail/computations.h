// Computations beside the protocol, each under the hash of what it depends on: asked for twice, made once.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/executor.h"
#include "core/rounds/learner.h"

namespace neuroshard::rounds {

template <class T>
class Computations {
 public:
  using Done = std::function<void(const T&)>;
  // `done` later, never from within; never after this is gone.  Threads: the executor's; the job's any.
  void run(const Hash256& key, RoundWork& work, Executor& executor, std::function<T()> job, Done done) {
    std::shared_ptr<Entry>& entry = entries_[key];
    if (entry && entry->result) {
      static_cast<void>(executor.post([entry = entry, done = std::move(done), alive = std::weak_ptr(alive_)] {
        if (!alive.expired()) done(*entry->result);
      }));
      return;
    }
    if (entry) {
      entry->waiting.push_back(std::move(done));
      return;
    }
    entry = std::make_shared<Entry>();
    entry->waiting.push_back(std::move(done));
    work.run([entry = entry, job = std::move(job)] { entry->result.emplace(job()); },
             [entry = entry, alive = std::weak_ptr(alive_)] {
               if (alive.expired()) return;
               const std::vector<Done> waiting = std::move(entry->waiting);
               for (const Done& done : waiting) done(*entry->result);
             });
  }
  // What is under way still calls back.
  void forget() { entries_.clear(); }

 private:
  struct Entry {
    std::optional<T> result;
    std::vector<Done> waiting;
  };
  std::map<Hash256, std::shared_ptr<Entry>> entries_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace neuroshard::rounds
