// The newest checkpoints of a data directory, offered to others for as long as they are there. In a network
// of peers only: whoever trains alone gives nothing away.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/exchange/server.h"
#include "core/storage/file_env.h"

namespace neuroshard::app {

class CheckpointOffers {
 public:
  struct Services {      // all outlive it
    Executor& executor;  // of the peers
    Executor& disk;      // where folders are read
    storage::FileEnv& files;
    exchange::ContentServer& server;
  };
  // root: the folder of checkpoints; looked at now and every ten seconds.  Threads: the executor's.
  CheckpointOffers(Services services, std::string root);

  // Ids of those that are offered.
  const std::set<std::string>& ids() const { return ids_; }

 private:
  struct Found {
    std::vector<std::pair<exchange::ContentRef, std::string>> files;          // with their paths
    std::vector<std::pair<std::string, exchange::NamedContent>> checkpoints;  // the newest first, with its id
  };
  static Found read(storage::FileEnv& files, const std::string& root);
  void look();
  void take(const Found& found);

  Services services_;
  const std::string root_;
  std::set<Hash256> offered_;
  std::set<std::string> ids_;
  std::unique_ptr<TimerHandle> timer_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace neuroshard::app
