// This node's part of a round on the disk (rounds/learner.h, RoundStore): `vector`, `contribution` and
// `learners` in one folder. Each file is replaced as a whole, in the order of calls: after a kill the old or
// the new one is there, never a part.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "core/base/executor.h"
#include "core/base/lifetime.h"
#include "core/base/log.h"
#include "core/net/mailbox.h"
#include "core/rounds/learner.h"
#include "core/storage/file_env.h"

namespace neuroshard::engine {

class RoundFiles final : public rounds::RoundStore {
 public:
  // folder: created if missing. node: the executor on which save() calls back. All outlive the object; its
  // destructor waits until every requested write is done.
  static Expected<std::unique_ptr<RoundFiles>> open(storage::FileEnv& files, std::string folder,
                                                    Logger& logger, Executor& node);
  ~RoundFiles() override;

  // RoundStore.  Threads: the node's executor.
  Expected<ByteSourcePtr> load(Record record) override;
  void save(Record record, ByteSourcePtr bytes, std::function<void(Expected<void>)> done) override;

 private:
  RoundFiles(storage::FileEnv& files, std::string folder, Logger& logger, Executor& node);
  std::string path(Record record) const;
  void write(const std::string& to, const ByteSource& bytes, const std::function<void(Expected<void>)>& done);

  storage::FileEnv& files_;
  const std::string folder_;
  Logger& logger_;
  const std::shared_ptr<net::Mailbox> node_;  // the round waits for the callback, so it must arrive
  std::unique_ptr<Executor> disk_;            // last: it is joined first
};

// Runs the computations of a node's rounds on a thread of its own. Those that its queue has no room for wait before it;
// the rounds bound their number.  Threads: the node's executor.
class RoundThread final : public rounds::RoundWork {
 public:
  explicit RoundThread(Executor& node);  // outlives it
  void run(std::function<void()> job, std::function<void()> done) override;
  // Drops the jobs that wait. Those under way still tell that they are done. To be called on the node's executor before the end of
  // this object on another thread.
  void close();

 private:
  void pump();

  const std::shared_ptr<net::Mailbox> node_;
  std::deque<std::pair<std::function<void()>, std::function<void()>>> waiting_;
  std::size_t under_way_ = 0;  // on the thread, or their ends on their way to the node
  Lifetime lifetime_;
  std::unique_ptr<Executor> thread_;  // last: it is joined first
};

}  // namespace neuroshard::engine
