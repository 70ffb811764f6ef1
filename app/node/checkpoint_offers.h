// The newest checkpoints of a data directory, and imported ones, offered to others: as whole files and slot
// by slot (core/checkpoint/slot_index.h). What is offered is held against retention (core/checkpoint/holds.h)
// while others fetch it, within the bounds of core/checkpoint/offered.h; beside the newest one no more room
// is taken than a quarter of what is free on the disk. In a network of peers only: whoever trains alone gives
// nothing away.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/checkpoint/catalogue.h"
#include "core/checkpoint/holds.h"
#include "core/checkpoint/offered.h"
#include "core/exchange/server.h"
#include "core/storage/file_env.h"

namespace neuroshard::app {

class CheckpointOffers {
 public:
  struct Services {      // all outlive it
    Executor& executor;  // of the peers
    Executor& disk;      // where folders are read
    const Clock& clock;
    storage::FileEnv& files;
    exchange::ContentServer& server;
  };
  // root: the folder of checkpoints; looked at now and every five seconds.  Threads: the executor's.
  CheckpointOffers(Services services, std::string root, std::shared_ptr<checkpoint::Holds> holds,
                   checkpoint::OfferRules rules = {});
  // Nothing is held any more.
  ~CheckpointOffers();

  // Ids of those that are offered: the SHA-256 of the manifest, and of the one that an import came with.
  const std::set<std::string>& ids() const { return ids_; }

 private:
  struct Content {
    exchange::ContentRef ref;
    std::string path;
    std::uint64_t offset = 0;
  };
  struct Item {
    std::vector<std::string> ids;
    exchange::NamedContent named;
    std::vector<Content> contents;
  };
  struct Found {
    std::vector<checkpoint::OfferedCheckpoints::Candidate> newest_first;  // of this node's own
    std::map<std::string, Item> items;                                    // by name: what may be offered
    std::vector<std::string> imported;
    std::uint64_t room = 0;
  };
  static Found read(storage::FileEnv& files, const std::string& root, const std::set<std::string>& offered);
  static Item read_item(storage::FileEnv& files, const checkpoint::Entry& entry);
  void look();
  void take(const Found& found);
  void offer(const Item& item, std::set<Hash256>& now);

  Services services_;
  const std::string root_;
  const std::shared_ptr<checkpoint::Holds> holds_;
  checkpoint::OfferedCheckpoints offered_;
  std::map<std::string, std::vector<Hash256>> contents_;  // of what is offered, by name
  std::set<Hash256> hashes_;
  std::set<std::string> ids_;
  std::unique_ptr<TimerHandle> timer_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace neuroshard::app
