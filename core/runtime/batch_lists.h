// The signed batch lists of this node's contributions (data/batch_list.h), in D/batches as ROUND-HASH; the newest
// are offered to other nodes by their hash, for audits.
//
// Threads: the node's executor, unless a comment says otherwise. Errors: none; a list that can't be kept gives a
// hash of zeros, with a line in the log.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/executor.h"
#include "core/base/log.h"
#include "core/crypto/keys.h"
#include "core/data/peer_source.h"
#include "core/net/mailbox.h"
#include "core/rounds/learner.h"
#include "core/storage/file_env.h"

namespace neuroshard::runtime {

inline constexpr std::size_t kept_batch_lists = 64;
inline constexpr const char* batch_lists_folder = "/batches";  // of the data directory

// "0000000012-4f…": sorted by round.
std::string batch_list_name(std::uint64_t round, const Hash256& hash);

class BatchLists final : public rounds::BatchKeeper {
 public:
  struct Services {  // all outlive the object
    storage::FileEnv& files;
    const crypto::KeyPair& key;
    Logger& logger;
    Executor& node;
    data::PeerSource* peers = nullptr;  // gets offers and withdrawals, on the disk thread
  };
  // Offers the lists that are in the folder already.
  BatchLists(Services services, std::string folder, const Hash256& network);
  // Waits for the disk; not on the node's executor, which the offers wait for.
  ~BatchLists() override;

  void keep(std::uint64_t round, const Hash256& opening, Bytes batches,
            std::function<void(const Hash256&)> done) override;

 private:
  // The disk thread.
  Expected<Hash256> write(std::uint64_t round, const Hash256& opening, ByteSpan batches);
  void offer(const Hash256& hash, std::uint64_t size, const std::string& name);
  void offer_kept();
  void drop_old();

  const Services services_;
  const std::string folder_;
  const Hash256 network_;
  const std::shared_ptr<net::Mailbox> node_;  // the contribution waits for the callback
  std::unique_ptr<Executor> disk_;            // last: it is joined first
};

}  // namespace neuroshard::runtime
