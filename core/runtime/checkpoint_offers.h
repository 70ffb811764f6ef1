// Offers the newest checkpoints of a data directory, and imported ones, to other nodes: as whole files and
// slot by slot (core/checkpoint/slot_index.h). While others fetch a checkpoint, retention leaves it alone
// (core/checkpoint/holds.h), within the bounds of core/checkpoint/offered.h; beside the newest one the
// offered checkpoints take a quarter of the free disk space at most. A node without a network offers nothing.
//
// Threads: the executor's of the peers. Errors: none; an unreadable or damaged checkpoint is not offered, nor
// is what turned out to be damaged when somebody asked for it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/base/lifetime.h"
#include "core/checkpoint/catalogue.h"
#include "core/checkpoint/holds.h"
#include "core/checkpoint/offered.h"
#include "core/exchange/server.h"
#include "core/storage/file_env.h"

namespace neuroshard::runtime {

class CheckpointOffers {
 public:
  struct Services {      // all outlive the offers
    Executor& executor;  // of the peers
    Executor& disk;      // reads the folders
    const Clock& clock;
    storage::FileEnv& files;
    exchange::ContentServer& server;
  };
  // root: the folder of checkpoints, which is read now and every five seconds.
  CheckpointOffers(Services services, std::string root, std::shared_ptr<checkpoint::Holds> holds,
                   checkpoint::OfferRules rules = {});
  // Releases all holds.
  ~CheckpointOffers();

  // The ids of offered checkpoints: the SHA-256 of the manifest and, of an import, that of the original one.
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
  struct Inventory {
    std::vector<checkpoint::OfferedCheckpoints::Candidate> newest_first;  // of this node's own
    std::map<std::string, Item> items;  // by name; those that may be offered
    std::vector<std::string> imported;
    std::uint64_t room = 0;
  };
  static Inventory read(storage::FileEnv& files, const std::string& root,
                        const std::set<std::string>& offered);
  static Item read_item(storage::FileEnv& files, const checkpoint::Entry& entry);
  void inspect();
  using Offered = std::map<Hash256, std::string>;  // and the checkpoint that it is from
  void take(const Inventory& found);
  void note_lost(const Inventory& found);
  bool is_damaged(const std::string& name) const { return lost_.count(name) != 0; }
  void offer(const std::string& name, const Item& item, Offered& now);

  Services services_;
  const std::string root_;
  const std::shared_ptr<checkpoint::Holds> holds_;
  checkpoint::OfferedCheckpoints offered_;
  std::map<std::string, std::vector<Hash256>> contents_;  // of what is offered, by name
  Offered hashes_;
  // By name; the server found them damaged or gone. Offered again, they would be read whole for each request.
  std::map<std::string, std::set<Hash256>> lost_;
  std::set<std::string> ids_;
  std::unique_ptr<TimerHandle> timer_;
  Lifetime lifetime_;
};

}  // namespace neuroshard::runtime
